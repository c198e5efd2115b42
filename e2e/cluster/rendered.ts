import { spawnSync } from 'node:child_process';
import { charts } from './chart.ts';

const chart = charts('chancery');

/** Arguments that name the Secrets which an installation must have. */
export const given = [
  'admin.existingSecret=admin',
  'tenant.protectionKey.existingSecret=protection',
  'wallet.keyEncryptionKey.existingSecret=kek',
  'blueprint.operationsKey.existingSecret=operations',
  'credential.verifierCertificate.existingSecret=verifier',
  'database.tenant.existingSecret=db-tenant',
  'database.wallet.existingSecret=db-wallet',
  'database.register.existingSecret=db-register',
  'database.blueprint.existingSecret=db-blueprint',
  'database.credential.existingSecret=db-credential',
  'nats.existingSecret=nats',
].flatMap((one) => ['--set', one]);

export const hasHelm = spawnSync('helm', ['version'], { stdio: 'ignore' }).status === 0;
if (!hasHelm) process.stderr.write('helm is not on PATH: what the chart renders is not examined\n');

/** Objects of a chart. */
export interface Rendered {
  readonly code: number | null;
  readonly err: string;
  /** Text of each object. */
  readonly objects: readonly string[];
}

/** The objects of the chart with these arguments of helm. */
export function render(...args: readonly string[]): Rendered {
  const { status, stdout, stderr } = spawnSync('helm', ['template', 'acme', chart, '-n', 'acme', ...args], {
    encoding: 'utf8',
    maxBuffer: 32_000_000,
  });
  return {
    code: status,
    err: stderr,
    objects: stdout.split(/^---$/m).filter((text) => text.includes('kind:')),
  };
}

export const ofKind = ({ objects }: Rendered, kind: string): readonly string[] =>
  objects.filter((text) => new RegExp(`^kind: ${kind}$`, 'm').test(text));
export const nameOf = (text: string): string => /^metadata:\n {2}name: (.+)$/m.exec(text)?.[1] ?? '';

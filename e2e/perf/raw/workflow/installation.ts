import { generateKeyPairSync } from 'node:crypto';
import { startRaw } from '../child.ts';
import { type RawSettings, startRawInstallation } from '../installation.ts';
import { createTokenSigner } from '../token.ts';
import { type Role, roles } from './site-permit.ts';

/** The raw ledger with the raw workflow service, wallet service and token listener before it. */
export interface RawWorkflow {
  readonly url: string;
  readonly pids: readonly number[];
  /** A token of the person of each role. */
  readonly tokens: Readonly<Record<Role, string>>;
  stop(): Promise<void>;
}

/** A key pair for ES256 tokens, as PEM. */
export function tokenKeys() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    signingKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/** A token with the claims of a person's. */
export function personToken(signingKey: string, name: string): string {
  return createTokenSigner(signingKey)({
    iss: 'urn:platform:raw',
    aud: ['raw:platform'],
    sub: name,
    roles: ['User'],
    org_id: '00000000-0000-0000-0002-000000000003',
    token_type: 'user',
  });
}

export async function startRawWorkflow(settings: RawSettings, isEncrypted: boolean): Promise<RawWorkflow> {
  const [client, delegation] = [tokenKeys(), tokenKeys()];
  const { key, cert, ca, databaseUrl, schema } = settings;
  const identity = { key, cert, ca };
  const ledger = await startRawInstallation(settings);
  const tenant = await startRaw(new URL('../mint.ts', import.meta.url), {
    ...identity,
    signingKey: delegation.signingKey,
  });
  const wallet = await startRaw(new URL('./wallet.ts', import.meta.url), {
    ...identity,
    databaseUrl,
    schema: `${schema}_wallet`,
    clientKey: client.publicKey,
    delegationKey: delegation.publicKey,
  });
  const service = await startRaw(new URL('./service.ts', import.meta.url), {
    ...identity,
    databaseUrl,
    schema: `${schema}_service`,
    clientKey: client.publicKey,
    mintUrl: new URL(tenant.said).origin,
    storeUrl: ledger.storeUrl,
    walletPort: Number(wallet.said),
    isEncrypted,
  });
  const programs = [service, wallet, tenant];
  const tokens = roles.map((name) => [name, personToken(client.signingKey, name)]);
  return {
    url: service.said,
    pids: [...ledger.pids, ...programs.map(({ pid }) => pid)],
    tokens: Object.fromEntries(tokens),
    stop: async () => {
      await Promise.all(programs.map((program) => program.stop()));
      await ledger.stop();
    },
  };
}

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { charts, ingressAddress, install, installKinds, type Release, readSecret } from './chart.ts';
import { kubectl, must } from './kubectl.ts';

/** The installation that all files of a run share; each file installs it if it is missing. */
export const release: Release = { name: 'acme', namespace: 'chancery-journeys' };
export const { namespace } = release;
export const installation = `${release.name}.chancery.local`;

/** Access to the gateway from outside the cluster. */
export interface GatewayAccess {
  readonly url: string;
  /** CA of the gateway's certificate, PEM; this process trusts it already. */
  readonly caFile: string;
  /** A file in the format of local mode's `local.json`, for journeys that run in both. */
  readonly stateFile: string;
}

/** Ensures that the shared installation exists and is ready. */
export async function ensureInstalled(): Promise<void> {
  await installKinds();
  await install(release);
}

/** Upgrades it to other values; without any it gets its original values. Migrations are disabled, because the schemas exist. */
export async function changeInstallation(...set: readonly string[]): Promise<void> {
  await install({ ...release, set: ['migrations.enabled=false', ...set] });
}

/** Applies the resources of `charts/chancery/samples` and waits until they are ready, with a deadline in seconds. */
export async function ensureSamples(deadlineSeconds = 90, where = namespace): Promise<void> {
  await kubectl('apply', '-n', where, '-f', charts('chancery', 'samples'));
  const resources = ['tenant/acme', 'validatorset/main', 'register/invoices'];
  const args = ['wait', '-n', where, '--for=condition=Ready', `--timeout=${deadlineSeconds}s`];
  await must('kubectl', [...args, ...resources], { timeoutMs: (deadlineSeconds + 10) * 1_000 });
}

/** Access to the gateway of an installation through the Ingress, with the administrator's credentials. */
export async function openGateway(where = namespace): Promise<GatewayAccess> {
  const folder = mkdtempSync(join(tmpdir(), 'chancery-cluster-'));
  const [caFile, adminPasswordFile, stateFile] = ['ca.crt', 'admin-password', 'state.json'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const ca = await readSecret(where, 'chancery-gateway-tls', 'ca.crt');
  writeFileSync(caFile, ca);
  setDefaultCACertificates([...getCACertificates('default'), ca]);
  const password = await readSecret(where, 'chancery-admin', 'password');
  writeFileSync(adminPasswordFile, password, { mode: 0o600 });
  const url = `https://${ingressAddress}`;
  const state = {
    gatewayUrl: url,
    mtlsTokenUrl: '',
    internalTokenUrl: '',
    adminEmail: 'admin@example.com',
    adminPasswordFile,
    serviceSecretsDir: '',
    installation,
    spiffeSockets: {},
    validators: [0, 1, 2, 3].map((ordinal) => ({
      validatorId: `validator-main-${ordinal}`,
      grpc: '',
      https: '',
      ops: '',
    })),
    processes: [],
  };
  writeFileSync(stateFile, JSON.stringify(state));
  return { url, caFile, stateFile };
}

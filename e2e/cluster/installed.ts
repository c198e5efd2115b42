import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { charts, ingressAddress, install, installKinds, type Release, readSecret } from './chart.ts';
import { kubectl, must } from './kubectl.ts';

/** The installation that the journeys of a run share: each file finds it, or makes it. */
export const release: Release = { name: 'acme', namespace: 'chancery-journeys' };
export const { namespace } = release;
export const installation = `${release.name}.chancery.local`;

/** What a client outside the cluster needs. */
export interface Door {
  readonly url: string;
  /** Certificates that the gateway's is judged by, PEM; this process trusts them already. */
  readonly caFile: string;
  /** A file in the shape of local mode's `local.json`, for the journeys that run against either. */
  readonly stateFile: string;
}

/** Makes sure that the shared installation is there and ready. */
export async function ensureInstalled(): Promise<void> {
  await installKinds();
  await install(release);
}

/** Upgrades it to other values for a while; without any it is as it was. The schemas are there, so no job migrates them. */
export async function changeInstallation(...set: readonly string[]): Promise<void> {
  await install({ ...release, set: ['migrations.enabled=false', ...set] });
}

/** The resources of `charts/chancery/samples`, applied and ready within the time in seconds. */
export async function ensureSamples(deadlineSeconds = 90, where = namespace): Promise<void> {
  await kubectl('apply', '-n', where, '-f', charts('chancery', 'samples'));
  const resources = ['tenant/acme', 'validatorset/main', 'register/invoices'];
  const args = ['wait', '-n', where, '--for=condition=Ready', `--timeout=${deadlineSeconds}s`];
  await must('kubectl', [...args, ...resources], { timeoutMs: (deadlineSeconds + 10) * 1_000 });
}

/** How to reach the gateway of an installation through the Ingress, and the administrator. */
export async function openDoor(where = namespace): Promise<Door> {
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

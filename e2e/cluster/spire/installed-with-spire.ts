import { connect } from 'node:tls';
import { install, installKinds, type Release, removeNamespace } from '../chart.ts';
import { forward } from '../forward.ts';
import { namespace as shared } from '../installed.ts';
import { kubectl } from '../kubectl.ts';

/** The installation of the files in `spire/`. */
export const release: Release = { name: 'acme', namespace: 'chancery' };
export const { namespace } = release;
export const installation = 'acme.chancery.local';

export const services = [
  'gateway',
  'tenant',
  'wallet',
  'register',
  'blueprint',
  'credential',
  'operator',
].map((name) => `service-${name}`);
export const members = [0, 1, 2, 3].map((ordinal) => `main-${ordinal}`);

export const idOf = (client: string): string => `spiffe://${installation}/service/${client}`;

/**
 * Ensures that the chart is installed with SPIRE identities and ready. The installation of other journeys is removed, because
 * the Ingress has one address.
 */
export async function ensureInstalled(isRegisteredByChart: boolean): Promise<void> {
  await removeNamespace(shared);
  await installKinds();
  const registered = `identity.spire.clusterSpiffeIds.enabled=${isRegisteredByChart}`;
  await install({ ...release, set: ['identity.provider=spire', registered] }, 150_000);
}

/** The certificate of a TLS server. */
export interface Served {
  readonly id: string;
  readonly serial: string;
  readonly expiresAtMs: number;
}

/** Reads the server certificate of a pod or Service. */
async function servedSvid(target: string, port: number): Promise<Served> {
  const door = await forward(namespace, target, port);
  try {
    const [host = '', local = ''] = door.address.split(':');
    const { promise, resolve, reject } = Promise.withResolvers<Served>();
    const socket = connect({ host, port: Number(local), rejectUnauthorized: false }, () => {
      const { subjectaltname = '', serialNumber, valid_to } = socket.getPeerCertificate();
      resolve({
        id: subjectaltname.replace(/^URI:/, ''),
        serial: serialNumber,
        expiresAtMs: Date.parse(valid_to),
      });
    });
    socket.setTimeout(10_000, () => socket.destroy(new Error(`${target} says nothing`)));
    socket.on('error', reject);
    return await promise.finally(() => socket.destroy());
  } finally {
    await door.stop();
  }
}

/** Server certificates of all processes, by client id. */
export async function allServed(): Promise<ReadonlyMap<string, Served>> {
  const doors = [
    ...['tenant', 'wallet', 'register', 'blueprint', 'credential'].map(
      (name) => [`service-${name}`, `service-${name}`] as const,
    ),
    ...members.map((pod) => [`validator-${pod}`, `pod/${pod}`] as const),
  ];
  const found = doors.map(async ([client, target]) => [client, await servedSvid(target, 7443)] as const);
  return new Map(await Promise.all(found));
}

/** Restarts of every container of the installation, by pod; a replaced pod has another name. */
export async function restarts(): Promise<Readonly<Record<string, number>>> {
  const out = await kubectl('get', 'pods', '-n', namespace, '-o', 'json');
  const { items } = JSON.parse(out) as {
    items: {
      metadata: { uid: string; name: string };
      status: { phase: string; containerStatuses?: { restartCount: number }[] };
    }[];
  };
  return Object.fromEntries(
    items
      .filter(({ status }) => status.phase === 'Running')
      .map(({ metadata, status }) => [
        `${metadata.name} ${metadata.uid}`,
        (status.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0),
      ]),
  );
}

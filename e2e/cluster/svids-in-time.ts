import { setTimeout as pause } from 'node:timers/promises';
import { waitReady } from './chart.ts';
import { forward } from './forward.ts';
import { namespace } from './installed.ts';
import { type ApiServer, kubectl } from './kubectl.ts';
import { isLive, type Pod, within } from './running-set.ts';

/** The issuer of the shared installation, and the pods with its identities. */

const issuer = 'svid-issuer';
/** Log message of a failed SVID request. */
const inVain = 'no new identity; trying again';

export type NamedPods = ReadonlyMap<string, Pod>;

/** Pods of the services and of the set `main`, by name. */
export async function podsWithIdentity(server: ApiServer): Promise<NamedPods> {
  const found = await Promise.all([
    listPods(
      server,
      'app.kubernetes.io/part-of=chancery,chancery.dev/client-id,chancery.dev/client-id!=svid-issuer',
    ),
    listPods(server, 'chancery.dev/validator-set=main'),
  ]);
  return new Map(found.flat().map((pod) => [pod.metadata.name, pod]));
}

async function listPods(server: ApiServer, labelSelector: string): Promise<readonly Pod[]> {
  const path = `/api/v1/namespaces/${namespace}/pods?${new URLSearchParams({ labelSelector })}`;
  const { status, body } = await server.request('GET', path);
  if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
  return body['items'] as readonly Pod[];
}

/** Pods with the restarts of their containers. */
export async function restartsOf(server: ApiServer): Promise<Readonly<Record<string, string>>> {
  const pods = [...(await podsWithIdentity(server)).values()];
  return Object.fromEntries(
    pods.map(({ metadata, status }) => {
      const restarts = status.containerStatuses?.map(({ restartCount }) => restartCount).join();
      return [metadata.name, `${metadata.uid} ${restarts}`];
    }),
  );
}

/** Replaces these pods at once and waits until the new ones are ready, with new SVIDs. */
export async function replacePods(server: ApiServer, names: readonly string[]): Promise<void> {
  const before = await podsWithIdentity(server);
  const former = new Set(names.map((name) => before.get(name)?.metadata.uid));
  await kubectl('delete', 'pods', ...names, '-n', namespace, '--wait=false');
  await within('the pods to be replaced', 90_000, async () => {
    const now = [...(await podsWithIdentity(server)).values()];
    return now.length === before.size && now.every((pod) => isLive(pod) && !former.has(pod.metadata.uid));
  });
}

/** Stops the issuer; resolves when it has no pods. */
export async function stopIssuer(): Promise<void> {
  await kubectl('scale', `deployment/${issuer}`, '--replicas=0', '-n', namespace);
  await kubectl('wait', '--for=delete', 'pod', '-l', `chancery.dev/client-id=${issuer}`, '-n', namespace);
}

/** Starts it again; resolves when it is ready. */
export async function startIssuer(): Promise<void> {
  await kubectl('scale', `deployment/${issuer}`, '--replicas=1', '-n', namespace);
  await waitReady(namespace, 60_000);
}

/** Gives an action access to the number of issued SVIDs since the start of the issuer, by client id. */
export async function whileCounting<T>(
  act: (count: () => Promise<ReadonlyMap<string, number>>) => Promise<T>,
): Promise<T> {
  const to = await forward(namespace, issuer, 9090);
  const line = /^chancery_svid_issuer_svids_total\{client_id="([^"]+)"\} (\d+)$/gm;
  const count = async () => {
    const text = await (await fetch(`http://${to.address}/metrics`)).text();
    return new Map([...text.matchAll(line)].map(([, clientId = '', given]) => [clientId, Number(given)]));
  };
  try {
    return await act(count);
  } finally {
    await to.stop();
  }
}

/** Names of pods with a failed SVID request since a time. */
async function podsWithoutNewSvid(
  server: ApiServer,
  names: readonly string[],
  since: Date,
): Promise<readonly string[]> {
  const failedPods = names.map(async (name) => {
    const query = new URLSearchParams({ sinceTime: since.toISOString() });
    const answer = await fetch(`${server.url}/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`);
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text.includes(inVain);
  });
  const found = await Promise.all(failedPods);
  return names.filter((_, index) => found[index]);
}

/**
 * Waits until every one of these pods has a failed SVID request, but not longer than the SVID of the first one is valid;
 * returns their names.
 */
export async function untilAllRequestsFailed(
  server: ApiServer,
  names: readonly string[],
  { since, patienceMs }: { readonly since: Date; readonly patienceMs: number },
): Promise<readonly string[]> {
  let firstAt: number | undefined;
  for (;;) {
    const failedPods = await podsWithoutNewSvid(server, names, since);
    if (failedPods.length > 0) firstAt ??= performance.now();
    if (failedPods.length === names.length) return failedPods;
    if (firstAt !== undefined && performance.now() - firstAt > patienceMs) return failedPods;
    if (firstAt === undefined && Date.now() - since.getTime() > 60_000) return failedPods;
    await pause(1_000);
  }
}

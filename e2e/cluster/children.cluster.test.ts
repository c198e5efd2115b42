import { expect, test } from 'vitest';
import { namespace } from './installed.ts';
import { useMainSet } from './main-set.ts';
import { changed, within } from './running-set.ts';

/** Manual changes of children are reverted, and foreign fields stay. */

interface Child {
  /** API path within the namespace. */
  readonly path: string;
  /** Merge patches of fields of the operator. */
  readonly edits: readonly object[];
}

const core = (path: string, ...edits: readonly object[]): Child => ({
  path: `/api/v1/namespaces/${namespace}/${path}`,
  edits,
});
const grouped = (group: string, path: string, ...edits: readonly object[]): Child => ({
  path: `/apis/${group}/v1/namespaces/${namespace}/${path}`,
  edits,
});
const children: readonly Child[] = [
  core('services/main', { spec: { selector: { 'chancery.dev/validator-set': 'other' } } }),
  core('services/main-members', { spec: { publishNotReadyAddresses: false } }),
  core('configmaps/main-config', { data: { CHANCERY_INSTALLATION: 'other' } }),
  core('serviceaccounts/validator-main', { automountServiceAccountToken: true }),
  grouped('policy', 'poddisruptionbudgets/main', { spec: { maxUnavailable: 4 } }),
  grouped('networking.k8s.io', 'networkpolicies/main', { spec: { ingress: [] } }),
  grouped(
    'apps',
    'statefulsets/main',
    { spec: { template: { spec: { terminationGracePeriodSeconds: 1 } } } },
    { spec: { revisionHistoryLimit: 1 } },
  ),
];
/** The label by which the operator selects its children. */
const label = { metadata: { labels: { 'app.kubernetes.io/managed-by': 'somebody-else' } } };
const foreign = {
  annotations: { 'example.org/mine': 'kept' },
  labels: { 'example.org/team': 'ledger' },
};

interface Live {
  readonly metadata: {
    readonly uid: string;
    readonly labels: object;
    readonly annotations?: object;
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly data?: object;
  readonly automountServiceAccountToken?: boolean;
}

const main = useMainSet();

async function find<T = Live>(path: string): Promise<T | undefined> {
  const { status, body } = await main.server.request('GET', path);
  return status === 200 ? (body as T) : undefined;
}

async function get(path: string): Promise<Live> {
  const found = await find(path);
  if (found === undefined) throw new Error(`${path} is not there`);
  return found;
}

async function patch(path: string, body: object): Promise<void> {
  const { status } = await main.server.request('PATCH', path, body, 'application/merge-patch+json');
  expect(status).toBe(200);
}

/** Fields of a child that the operator sets; addresses that the API server assigned are not. */
function oursOf({ metadata, spec, data, automountServiceAccountToken }: Live) {
  const { clusterIP: _one, clusterIPs: _all, ...chosen } = spec ?? {};
  return {
    labels: { ...foreign.labels, ...metadata.labels },
    spec: chosen,
    data,
    automountServiceAccountToken,
  };
}

/** Milliseconds until a child is restored. */
function restored(path: string, as: Live): Promise<number> {
  return within(path, 10_000, async () => {
    const found = await find(path);
    if (found !== undefined) expect(oursOf(found)).toEqual(oursOf(as));
    return found !== undefined;
  });
}

/** The 95th percentile. */
function p95(times: readonly number[]): number {
  return times.toSorted((left, right) => left - right)[Math.ceil(times.length * 0.95) - 1] ?? Infinity;
}

test('every edited or deleted child is restored within 2 s, and foreign fields stay', async () => {
  const pods = await main.set.uids();
  const times = new Map<string, number>();
  for (const { path, edits } of children) {
    await patch(path, { metadata: foreign });
    const before = await get(path);
    for (const edit of [...edits, label]) {
      await patch(path, edit);
      times.set(`${path} ${JSON.stringify(edit)}`, await restored(path, before));
      expect((await get(path)).metadata).toMatchObject(foreign);
    }
  }
  for (const { path } of children) {
    const before = await get(path);
    await main.server.request('DELETE', path, { propagationPolicy: 'Orphan' });
    await within(
      `${path} to go`,
      20_000,
      async () => (await find(path))?.metadata.uid !== before.metadata.uid,
    );
    times.set(`${path} deleted`, await restored(path, before));
    expect((await get(path)).metadata.uid).not.toBe(before.metadata.uid);
  }
  const all = [...times.values()];
  process.stdout.write(
    `${all.length} changes by hand put back: p50 ${Math.round(all.toSorted((a, b) => a - b)[all.length >> 1] ?? 0)} ms, p95 ${Math.round(p95(all))} ms\n`,
  );
  expect(p95(all), JSON.stringify([...times], null, 2)).toBeLessThan(2_000);
  await main.set.settled(30_000);
  expect(changed(pods, await main.set.uids())).toEqual([]);
}, 180_000);

test('a manually scaled StatefulSet is scaled back, and its members stay', async () => {
  const pods = await main.set.uids();
  await patch(`/apis/apps/v1/namespaces/${namespace}/statefulsets/main/scale`, { spec: { replicas: 5 } });
  await within('four again', 30_000, async () => {
    const { spec } = await get(`/apis/apps/v1/namespaces/${namespace}/statefulsets/main`);
    return spec?.['replicas'] === 4 && (await main.set.pods()).length === 4;
  });
  await main.set.settled(60_000);
  expect(changed(pods, await main.set.uids())).toEqual([]);
});

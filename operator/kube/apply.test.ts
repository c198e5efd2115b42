import { beforeEach, describe, expect, test } from 'vitest';
import { instant, type ManualTiming, manualTiming } from '#kit/testing/manual-timing.ts';
import { Applier, type ApplyResult, type Child, childId } from './apply.ts';
import { AdoptionRefused } from './errors.ts';
import { prune } from './prune.ts';
import { type KubeObject, type Metadata, type Resource, withoutManagedFields } from './resource.ts';
import { byOwner, ownerIndex, Store } from './store.ts';
import { ClusterState } from './testing/cluster-state.ts';
import { type DirectApi, directApi } from './testing/direct-api.ts';
import { at, configMaps, make, put, widgets } from './testing/fixtures.ts';

const deployments: Resource = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
};
const hashAnnotation = 'test.dev/applied';
const managedBy = { 'app.kubernetes.io/managed-by': 'test-operator' };

let state: ClusterState;
let timing: ManualTiming;
let api: DirectApi;
let owner: KubeObject;
const caches = new Map<Resource, Store>();

beforeEach(() => {
  state = new ClusterState();
  timing = manualTiming();
  api = directApi(state, instant(timing));
  owner = put(state, widgets, make(widgets, 'owner'));
  for (const resource of [deployments, configMaps]) {
    caches.set(resource, new Store({ [ownerIndex]: byOwner }, () => undefined));
  }
});

/** Copies the state of the cluster into the caches, as reflectors do. */
function catchUp(): void {
  for (const [resource, store] of caches) store.replace(state.list(at(resource)).map(withoutManagedFields));
}

function applier(): Applier {
  const cacheOf = (resource: Resource) => caches.get(resource);
  return new Applier({ api, timing, manager: 'test-widget', hashAnnotation, cacheOf });
}

function deployment(replicas: number, metadata: Partial<Metadata> = {}): Child {
  const container = { name: 'main', image: 'app:1', env: [{ name: 'A', value: '1' }] };
  const content = { spec: { replicas, template: { spec: { containers: [container] } } } };
  return {
    resource: deployments,
    object: make(deployments, 'web', content, { labels: managedBy, ...metadata }),
  };
}

function config(value: string): Child {
  return {
    resource: configMaps,
    object: make(configMaps, 'web', { data: { value } }, { labels: managedBy }),
  };
}

const live = (resource: Resource = deployments) => state.get(at(resource, 'web'));

/** Changes an object as another client. */
function change(resource: Resource, patch: unknown): void {
  state.merge(at(resource, 'web'), patch);
  catchUp();
}

/** Number of API calls of a function. */
async function callsOf(act: () => Promise<unknown>): Promise<number> {
  const before = api.calls.length;
  await act();
  return api.calls.length - before;
}

describe('a child', () => {
  test('is created with its owner reference and our field manager', async () => {
    const applied = await applier().apply(owner, deployment(2));
    expect(applied.action).toBe('created');
    expect(live()).toMatchObject({
      metadata: {
        annotations: { [hashAnnotation]: expect.stringMatching(/^[0-9a-f]{16}$/) },
        ownerReferences: [{ kind: 'Widget', name: 'owner', uid: owner.metadata.uid, controller: true }],
        managedFields: [{ manager: 'test-widget' }],
      },
      spec: { replicas: 2 },
    });
    expect(api.calls.map(({ verb }) => verb)).toEqual(['get', 'patch']);
    expect(api.calls[1]).toMatchObject({
      query: { fieldManager: 'test-widget', force: 'true' },
      contentType: 'application/apply-patch+yaml',
    });
  });

  test.each([
    ['with generations', deployment(2)],
    ['without generations', config('a')],
  ])('of a kind %s that is up to date costs no call, before and after a restart', async (_, child) => {
    const one = applier();
    await one.apply(owner, child);
    catchUp();
    expect(await callsOf(() => one.apply(owner, child))).toBe(0);
    expect(await callsOf(() => applier().apply(owner, child))).toBe(0);
  });

  test('is reported as behind while the cache has an earlier version', async () => {
    const one = applier();
    await one.apply(owner, deployment(2));
    catchUp();
    await one.apply(owner, deployment(3));
    expect(await one.apply(owner, deployment(3))).toEqual({ action: 'unchanged', isBehind: true });
    catchUp();
    expect(await one.apply(owner, deployment(3))).toEqual({ action: 'unchanged', isBehind: false });
  });

  test('costs no call while the cache has not seen what was applied', async () => {
    const one = applier();
    await one.apply(owner, deployment(2));
    catchUp();
    await one.apply(owner, deployment(3));
    expect(await callsOf(() => one.apply(owner, deployment(3)))).toBe(0);
  });

  test('whose values the API server normalises costs one call, not one per reconcile', async () => {
    const one = applier();
    await one.apply(owner, config('a'));
    change(configMaps, { data: { value: 'A' } });
    // the stored object counts as the result of the apply
    const writing = directApi(state, instant(timing));
    writing.call = (request) =>
      api.call(request).then((body) => {
        change(configMaps, { data: { value: 'A' } });
        return request.verb === 'patch' ? live(configMaps) : body;
      });
    const other = new Applier({
      api: writing,
      timing,
      manager: 'test-widget',
      hashAnnotation,
      cacheOf: (resource) => caches.get(resource),
    });
    expect(await callsOf(() => other.apply(owner, config('a')))).toBe(1);
    expect(await callsOf(() => other.apply(owner, config('a')))).toBe(0);
  });

  test('that another client edited is restored; added fields stay', async () => {
    const one = applier();
    await one.apply(owner, deployment(2));
    catchUp();
    change(deployments, {
      metadata: { annotations: { 'other.dev/note': 'mine' }, labels: { team: 'a' } },
      spec: { paused: true },
    });
    expect(await callsOf(() => one.apply(owner, deployment(2)))).toBe(0);
    change(deployments, { spec: { replicas: 9 } });
    expect((await one.apply(owner, deployment(2))).action).toBe('configured');
    expect(live()).toMatchObject({
      metadata: { annotations: { 'other.dev/note': 'mine' }, labels: { team: 'a' } },
      spec: { replicas: 2, paused: true },
    });
    change(deployments, { metadata: { labels: { 'app.kubernetes.io/managed-by': null } } });
    change(deployments, { metadata: { labels: managedBy, ownerReferences: [] } });
    expect((await one.apply(owner, deployment(2))).action).toBe('configured');
    expect(live().metadata.ownerReferences).toHaveLength(1);
  });

  test('that another client edited during a restart is restored afterwards', async () => {
    await applier().apply(owner, deployment(2));
    change(deployments, { spec: { replicas: 9 } });
    expect((await applier().apply(owner, deployment(2))).action).toBe('configured');
    expect(live()).toMatchObject({ spec: { replicas: 2 } });
  });

  test('loses a field that is no longer desired, also after a restart', async () => {
    const child = config('a');
    await applier().apply(owner, { ...child, object: { ...child.object, data: { value: 'a', old: 'b' } } });
    catchUp();
    expect((await applier().apply(owner, child)).action).toBe('configured');
    expect(live(configMaps)['data']).toEqual({ value: 'a' });
  });

  test('that is being deleted is refused until it is gone', async () => {
    await applier().apply(owner, deployment(2));
    change(deployments, { metadata: { finalizers: ['test.dev/keep'] } });
    state.delete(at(deployments, 'web'), undefined);
    catchUp();
    await expect(applier().apply(owner, deployment(2))).rejects.toMatchObject({ code: 'CHILD_TERMINATING' });
  });

  test('in a metadata-only cache is read once after a restart and not written', async () => {
    const bare = () => {
      const { apiVersion, kind, metadata } = withoutManagedFields(live(configMaps));
      caches.get(configMaps)?.replace([{ apiVersion, kind, metadata }]);
    };
    await applier().apply(owner, config('a'));
    bare();
    const other = applier();
    api.calls.length = 0;
    await other.apply(owner, config('a'));
    await other.apply(owner, config('a'));
    expect(api.calls.map(({ verb }) => verb)).toEqual(['get']);
    state.merge(at(configMaps, 'web'), { data: { value: 'theirs' } });
    bare();
    expect((await other.apply(owner, config('a'))).action).toBe('configured');
  });
});

describe('an object of the desired name', () => {
  const reference = (kind: string, name: string, uid: string) => ({
    ownerReferences: [{ apiVersion: 'test.dev/v1', kind, name, uid, controller: true }],
  });

  test.each([
    ['has no controller and no label', {}, 'has no owner'],
    ['another object controls', reference('Widget', 'other', 'x'), 'belongs to Widget other'],
    ['an object of another kind controls', reference('Gadget', 'owner', 'x'), 'belongs to Gadget owner'],
  ])('that %s is not changed', async (_, metadata, holder) => {
    put(state, configMaps, make(configMaps, 'web', { data: { value: 'theirs' } }, metadata));
    for (const isCached of [false, true]) {
      if (isCached) catchUp();
      const refused = applier().apply(owner, config('ours'));
      await expect(refused).rejects.toBeInstanceOf(AdoptionRefused);
      await expect(refused).rejects.toThrow(`ConfigMap acme/web exists and ${holder}`);
    }
    expect(live(configMaps)['data']).toEqual({ value: 'theirs' });
  });

  test.each([
    ['belongs to an earlier owner of the same name', reference('Widget', 'owner', 'former')],
    ['has no controller but our label', { labels: managedBy }],
  ])('that %s is adopted', async (_, metadata) => {
    put(state, configMaps, make(configMaps, 'web', { data: { value: 'old' } }, metadata));
    expect((await applier().apply(owner, config('new'))).action).toBe('configured');
    expect(live(configMaps)['data']).toEqual({ value: 'new' });
  });

  test('that replaced the child since the check is not changed', async () => {
    await applier().apply(owner, config('ours'));
    catchUp();
    state.delete(at(configMaps, 'web'), undefined);
    put(state, configMaps, make(configMaps, 'web', { data: { value: 'theirs' } }));
    await expect(applier().apply(owner, config('newer'))).rejects.toMatchObject({ reason: 'Conflict' });
    expect(live(configMaps)['data']).toEqual({ value: 'theirs' });
  });
});

describe('an ownership conflict over a field', () => {
  const replicas = (count: number) => make(deployments, 'web', { spec: { replicas: count } });
  const interfere = () => {
    state.apply(at(deployments, 'web'), replicas(9), 'autoscaler');
    catchUp();
  };
  /** Another manager changes the field every second, followed by an apply. */
  async function contend(one: Applier, seconds: number): Promise<ApplyResult[]> {
    const results: ApplyResult[] = [];
    for (let second = 0; second < seconds; second += 1) {
      interfere();
      results.push(await one.apply(owner, deployment(2)));
      catchUp();
      await timing.advance(1_000);
    }
    return results;
  }
  const writes = () => api.calls.filter(({ verb }) => verb === 'patch').length;

  test('is throttled after a few writes to six per minute and always names the competing manager', async () => {
    const one = applier();
    await one.apply(owner, deployment(2));
    // a manager that only adds a field does not compete
    const note = make(deployments, 'web', {}, { annotations: { 'other.dev/note': 'mine' } });
    state.apply(at(deployments, 'web'), note, 'bystander');
    const first = await contend(one, 60);
    const opened = first.findIndex(({ action }) => action === 'throttled');
    expect([first.length, opened]).toEqual([60, 6]);
    const before = { writes: writes(), calls: api.calls.length };
    const second = [...first.slice(opened), ...(await contend(one, 120))];
    expect(new Set(second.map(({ action }) => action))).toEqual(new Set(['throttled']));
    expect(second).toContainEqual(expect.objectContaining({ competingManagers: ['autoscaler'] }));
    expect(writes() - before.writes).toBeLessThanOrEqual(12);
    // the competing managers are not read again
    expect(api.calls.length - before.calls).toBe(writes() - before.writes);
  });

  test('ends after 30 s without a conflicting change', async () => {
    const one = applier();
    await one.apply(owner, deployment(2));
    await contend(one, 20);
    await timing.advance(10_000);
    expect((await one.apply(owner, deployment(2))).action).toBe('throttled');
    expect(live()).toMatchObject({ spec: { replicas: 2 } });
    catchUp();
    expect((await one.apply(owner, deployment(2))).action).toBe('throttled');
    await timing.advance(60_000);
    expect(await callsOf(() => one.apply(owner, deployment(2)))).toBe(0);
    expect((await one.apply(owner, deployment(2))).action).toBe('unchanged');
    interfere();
    expect((await one.apply(owner, deployment(2))).action).toBe('configured');
  });

  test('ends with a change of the desired object', async () => {
    const one = applier();
    await one.apply(owner, deployment(2));
    await contend(one, 20);
    expect((await one.apply(owner, deployment(3))).action).toBe('configured');
    one.forget(owner.metadata.uid ?? '');
  });
});

describe('pruning', () => {
  const sources = () => [...caches].map(([resource, cache]) => ({ resource, cache }));
  const retainLabel = 'test.dev/retain';

  test('deletes children that are not desired, but no retained or foreign objects', async () => {
    const one = applier();
    await one.apply(owner, deployment(2));
    await one.apply(owner, config('a'));
    const kept = {
      resource: configMaps,
      object: make(configMaps, 'kept', {}, { labels: { [retainLabel]: 'true' } }),
    };
    await one.apply(owner, kept);
    put(state, configMaps, make(configMaps, 'stranger'));
    catchUp();
    const ownerUid = owner.metadata.uid ?? '';
    const desiredIds = new Set([childId(deployment(2))]);
    const options = { api, ownerUid, caches: sources(), desiredIds, retainLabel };
    expect(await prune(options)).toEqual(['/ConfigMap/acme/web']);
    const names = state.list(at(configMaps)).map(({ metadata }) => metadata.name);
    expect(names).toEqual(['kept', 'stranger']);
    catchUp();
    expect(await callsOf(() => prune(options))).toBe(0);
  });

  test('does not delete an object that replaced a child', async () => {
    await applier().apply(owner, config('a'));
    catchUp();
    state.delete(at(configMaps, 'web'), undefined);
    put(state, configMaps, make(configMaps, 'web', { data: { value: 'theirs' } }));
    const ownerUid = owner.metadata.uid ?? '';
    const deleted = await prune({ api, ownerUid, caches: sources(), desiredIds: new Set(), retainLabel });
    expect(deleted).toEqual([]);
    expect(live(configMaps)['data']).toEqual({ value: 'theirs' });
  });

  test('never deletes a volume claim', async () => {
    const claims = { ...configMaps, kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims' };
    await applier().apply(owner, { resource: claims, object: make(claims, 'data') });
    const cache = new Store({ [ownerIndex]: byOwner }, () => undefined);
    cache.replace(state.list(at(claims)));
    const ownerUid = owner.metadata.uid ?? '';
    const deleted = await prune({
      api,
      ownerUid,
      caches: [{ resource: claims, cache }],
      desiredIds: new Set(),
      retainLabel,
    });
    expect(deleted).toEqual([]);
  });
});

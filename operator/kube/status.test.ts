import { beforeEach, describe, expect, test } from 'vitest';
import { instant, manualTiming } from '#kit/testing/manual-timing.ts';
import { type KubeObject, withoutManagedFields } from './resource.ts';
import { StatusWriter } from './status.ts';
import { ClusterState } from './testing/cluster-state.ts';
import { type DirectApi, directApi } from './testing/direct-api.ts';
import { at, make, put, widgets } from './testing/fixtures.ts';

let state: ClusterState;
let api: DirectApi;
let owner: KubeObject;

beforeEach(() => {
  state = new ClusterState();
  api = directApi(state, instant(manualTiming()));
  owner = put(state, widgets, make(widgets, 'owner'));
});

describe('a status', () => {
  const current = () => withoutManagedFields(state.get(at(widgets, 'owner')));
  const writer = () => new StatusWriter({ api, resource: widgets, manager: 'test-widget-status' });

  test('is written when it has changed and costs no call otherwise', async () => {
    const one = writer();
    expect(await one.write(owner, { replicas: 1, observedGeneration: 1 })).toBe(true);
    // before the cache has seen it, after, and after a restart
    expect(await one.write(owner, { observedGeneration: 1, replicas: 1 })).toBe(false);
    expect(await one.write(current(), { replicas: 1, observedGeneration: 1 })).toBe(false);
    expect(await writer().write(current(), { replicas: 1, observedGeneration: 1 })).toBe(false);
    expect(await one.write(current(), { observedGeneration: 1 })).toBe(true);
    expect(current()['status']).toEqual({ observedGeneration: 1 });
    expect(current().metadata.generation).toBe(1);
    expect(api.calls.map(({ subresource, query }) => [subresource, query?.['fieldManager']])).toEqual([
      ['status', 'test-widget-status'],
      ['status', 'test-widget-status'],
    ]);
  });

  test('keeps the fields of other managers', async () => {
    const one = writer();
    await one.write(owner, { replicas: 1 });
    state.apply(
      { ...at(widgets, 'owner'), subresource: 'status' },
      make(widgets, 'owner', { status: { other: 2 } }),
      'x',
    );
    expect(await one.write(current(), { replicas: 1 })).toBe(true);
    expect(await one.write(current(), { replicas: 1 })).toBe(false);
    expect(current()['status']).toEqual({ replicas: 1, other: 2 });
    state.merge(at(widgets, 'owner'), { status: { replicas: 7 } });
    expect(await one.write(current(), { replicas: 1 })).toBe(true);
    one.forget(owner.metadata.uid ?? '');
  });
});

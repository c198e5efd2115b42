import { describe, expect, test } from 'vitest';
import { isAllReconciled } from './cold-start.ts';
import { isSettled, readFollowed } from './follow.ts';
import { blobBytes } from './image-sizes.ts';
import { dispatched } from './meter.ts';
import { population, registers, tenants, validatorSets } from './population.ts';
import { millicores, readUsage } from './usage.ts';
import { changedObjects, versionsOf, writableKinds, writeCalls } from './writes.ts';

describe('counting writes', () => {
  const rules = [
    { apiGroups: ['chancery.dev'], resources: ['tenants', 'tenants/status'], verbs: ['get', 'patch'] },
    { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
    { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  ];

  test('concerns the kinds that a role may change', () => {
    expect(writableKinds(rules)).toEqual([
      { group: 'chancery.dev', resource: 'tenants', subresource: '' },
      { group: 'chancery.dev', resource: 'tenants', subresource: 'status' },
      { group: '', resource: 'pods', subresource: 'eviction' },
    ]);
  });

  test("uses the API server's count, for every client; reads and other subresources are not counted", () => {
    const line = (path: string, verb: string, value: number) => {
      const [group, resource, subresource] = path.split('/');
      const labels = `group="${group}",resource="${resource}",subresource="${subresource}",verb="${verb}"`;
      return `apiserver_request_total{code="200",${labels}} ${value}`;
    };
    const text = [
      line('chancery.dev/tenants/', 'PATCH', 1),
      line('chancery.dev/tenants/status', 'APPLY', 2),
      line('chancery.dev/tenants/', 'WATCH', 40),
      line('/pods/eviction', 'POST', 4),
      line('/pods/status', 'PATCH', 50),
      line('coordination.k8s.io/leases/', 'PUT', 60),
    ].join('\n');
    expect(writeCalls(text, writableKinds(rules))).toBe(7);
  });

  test('compares versions; the operator’s own pod and the events of others are left out', () => {
    const object = (kind: string, name: string, resourceVersion: string, more: object = {}) => ({
      kind,
      metadata: { name, uid: `uid-${name}`, resourceVersion, ...more },
    });
    const own = { labels: { 'app.kubernetes.io/name': 'operator' } };
    const before = versionsOf([
      object('Tenant', 'stays', '1'),
      object('Tenant', 'turns', '2'),
      object('Tenant', 'goes', '3'),
      object('Pod', 'operator', '4', own),
    ]);
    const after = versionsOf([
      object('Tenant', 'stays', '1'),
      object('Tenant', 'turns', '7'),
      object('Pod', 'operator', '8', own),
      { ...object('Event', 'ours', '9'), reportingController: 'chancery.dev/operator' },
      { ...object('Event', 'theirs', '9'), reportingController: 'kubelet' },
    ]);
    expect(changedObjects(before, after)).toEqual([
      'Tenant turns uid-turns',
      'Tenant goes uid-goes',
      'Event ours uid-ours',
    ]);
    expect(changedObjects(before, before)).toEqual([]);
  });
});

test('calls are counted by their flow', () => {
  const line = (flow: string, value: number) =>
    `apiserver_flowcontrol_dispatched_requests_total{flow_schema="${flow}",priority_level="workload-low"} ${value}`;
  expect(dispatched([line('ours', 7), line('ours-not', 9)].join('\n'), 'ours')).toBe(7);
});

test('the kubelet’s summary becomes CPU and memory of one pod', () => {
  const place = { namespace: 'bench', name: 'operator', node: 'one' };
  const at = (time: string, cpuNanoseconds: number) => {
    const containers = [
      { cpu: { time, usageCoreNanoSeconds: cpuNanoseconds }, memory: { workingSetBytes: 2 ** 27 } },
    ];
    const pods = [
      { podRef: { namespace: 'other', name: 'operator' }, containers: [] },
      { podRef: { namespace: 'bench', name: 'operator' }, containers },
    ];
    return readUsage(pods, place);
  };
  const [before, after] = [at('2026-01-01T00:00:00Z', 5e9), at('2026-01-01T00:01:00Z', 6.2e9)];
  expect(after.memoryMiB).toBe(128);
  expect(millicores(before, after)).toBeCloseTo(20);
  expect(() => readUsage([], place)).toThrow('bench/operator');
});

test('a blob that several images have counts once', () => {
  const line = (digest: string, size: number) =>
    `-rw-r--r-- 0/0 ${String(size).padStart(10)} 1970-01-01 00:00 blobs/sha256/${digest}`;
  const layout = '-rw-r--r-- 0/0 30 1970-01-01 00:00 oci-layout';
  const listings = [
    [layout, line('aa', 100), line('bb', 20)].join('\n'),
    [layout, line('aa', 100), line('cc', 3)].join('\n'),
  ];
  expect(blobBytes(listings)).toBe(123);
});

test('an object is settled when its newest generation is Ready', () => {
  const seen = (generation: number, observedGeneration: number, status: string) =>
    readFollowed({
      metadata: { name: 'one', generation },
      status: { observedGeneration, conditions: [{ type: 'Ready', status, message: 'said' }] },
    });
  expect(isSettled(seen(2, 2, 'True'))).toBe(true);
  expect(isSettled(seen(2, 1, 'True'))).toBe(false);
  expect(isSettled(seen(2, 2, 'False'))).toBe(false);
  expect(isSettled(readFollowed({ metadata: { name: 'new', generation: 1 } }))).toBe(false);
});

describe('a cold start is over', () => {
  const text = (reconciled: number, depth: number, errors: number) => `
controller_runtime_reconcile_total{controller="tenant",result="requeue_after"} ${reconciled}
controller_runtime_reconcile_errors_total{controller="tenant"} ${errors}
controller_runtime_active_workers{controller="tenant"} 0
workqueue_depth{name="tenant",controller="tenant"} ${depth}
`;

  test('when the number of successful reconciles is that of the objects, and none waits', () => {
    expect(isAllReconciled(text(300, 0, 0), { tenant: 300 })).toBe(true);
    expect(isAllReconciled(text(299, 0, 0), { tenant: 300 })).toBe(false);
    expect(isAllReconciled(text(300, 1, 0), { tenant: 300 })).toBe(false);
    expect(isAllReconciled('', { tenant: 300 })).toBe(false);
  });

  test('never, when one failed', () => {
    expect(() => isAllReconciled(text(300, 0, 1), { tenant: 300 })).toThrow('failed');
  });
});

test('the population has the size that the bounds refer to', () => {
  expect([tenants().length, registers().length, validatorSets().length]).toEqual([300, 50, 5]);
  const users = new Map<unknown, number>();
  for (const { spec } of registers()) {
    const { name } = spec['validatorSetRef'] as { name: string };
    users.set(name, (users.get(name) ?? 0) + 1);
  }
  expect([...users.values()]).toEqual(Array(population.validatorSets).fill(10));
});

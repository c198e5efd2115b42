import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../kube/resource.ts';
import { REGISTER_ID, registerOf } from '../../plan/testing/objects.ts';
import { makeSet } from '../../plan/validator-set/testing/sets.ts';
import {
  boundRegister,
  memberCount,
  memberFacts,
  podFacts,
  retainedClaims,
  statefulSetFacts,
} from './observe.ts';

function pod(status: object, metadata: object = {}): KubeObject {
  const own = {
    name: 'main-0',
    namespace: 'acme',
    uid: 'uid',
    labels: { 'controller-revision-hash': 'main-1' },
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...own, ...metadata },
    spec: { nodeName: 'n1' },
    status,
  };
}
const ready = (status: string) => [{ type: 'Ready', status, lastTransitionTime: '2026-01-01T00:00:00Z' }];

describe('a pod', () => {
  test('that works', () => {
    const facts = podFacts(
      pod({ conditions: ready('True'), containerStatuses: [{ ready: true }], podIP: '10.0.0.1' }),
    );
    expect(facts).toMatchObject({
      isReady: true,
      isBroken: false,
      revision: 'main-1',
      node: 'n1',
      address: '10.0.0.1',
      readySinceMs: Date.UTC(2026, 0, 1),
    });
  });

  test('of a silent node is not ready, and not broken', () => {
    const facts = podFacts(pod({ conditions: ready('False'), containerStatuses: [{ ready: true }] }));
    expect(facts).toMatchObject({ isReady: false, isBroken: false });
  });

  test('that crashes has the reason', () => {
    const state = { waiting: { reason: 'CrashLoopBackOff' } };
    const facts = podFacts(pod({ conditions: ready('False'), containerStatuses: [{ ready: false, state }] }));
    expect(facts).toMatchObject({ isReady: false, isBroken: true, trouble: 'CrashLoopBackOff' });
  });

  test('that cannot be scheduled has the reason', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
    expect(podFacts(pod({ conditions })).trouble).toBe('Unschedulable');
  });

  test('is forced by its own uid only', () => {
    const annotated = (uid: string) => pod({}, { annotations: { 'chancery.dev/force-roll': uid } });
    expect([podFacts(annotated('uid')).isForced, podFacts(annotated('other')).isForced]).toEqual([
      true,
      false,
    ]);
  });
});

test('the revision of a StatefulSet is known once its controller has observed the last change', () => {
  const object = (observedGeneration: number): KubeObject => ({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'main', uid: 'sts', generation: 2 },
    spec: { replicas: 4 },
    status: { observedGeneration, updateRevision: 'main-2' },
  });
  expect(statefulSetFacts(object(1)).updateRevision).toBeUndefined();
  expect(statefulSetFacts(object(2))).toMatchObject({ replicas: 4, updateRevision: 'main-2' });
});

test('members are desired, existing, or stopped with the set', () => {
  const set = makeSet({ replicas: 2 });
  const found = { pods: [pod({}, { name: 'main-3' })], claims: [] };
  const names = memberFacts(set, memberCount(set, 2), found, () => undefined).map(({ name }) => name);
  expect(names).toEqual(['main-0', 'main-1', 'main-2', 'main-3']);
  const members = [
    { name: 'main-4', ordinal: 4, phase: 'Suspended' },
    { name: 'main-6', ordinal: 6, phase: 'Removed' },
  ];
  expect(memberCount(makeSet({ suspend: true, replicas: 2 }, { status: { members } }), 0)).toBe(5);
});

test('a retained claim has no member or a left-at annotation; an unreadable annotation is ignored', () => {
  const claim = (name: string, leftAt?: string, more: object = {}): KubeObject => {
    const annotations = leftAt === undefined ? {} : { 'chancery.dev/left-at': leftAt };
    const metadata = {
      name,
      namespace: 'acme',
      uid: `uid of ${name}`,
      resourceVersion: '7',
      annotations,
      ...more,
    };
    return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata };
  };
  const claims = [
    claim('data-main-0'),
    claim('data-main-1', '2026-01-01T00:00:00Z'),
    claim('data-main-2', 'yesterday'),
    claim('data-main-3', '2026-01-01T00:00:00.000Z'),
    claim('data-main-4', undefined, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    claim('data-other-5'),
    claim('backup-main-6'),
  ];
  const members = memberFacts(makeSet({ replicas: 2 }), 2, { pods: [], claims }, () => undefined);
  const noted = Date.UTC(2026, 0, 1);
  expect(retainedClaims(makeSet(), members, claims)).toMatchObject([
    { ordinal: 1, name: 'data-main-1', leftAtMs: noted },
    { ordinal: 2, uid: 'uid of data-main-2', resourceVersion: '7', leftAtMs: undefined },
    { ordinal: 3, leftAtMs: noted },
  ]);
});

test.each([
  ['Online', false],
  ['Deleting', true],
])('a Register whose ledger is %s: deleted is %s', (phase, isDeleting) => {
  const register = registerOf({}, { status: { registerId: REGISTER_ID, phase } });
  expect(boundRegister(register)).toMatchObject({ registerId: REGISTER_ID, isDeleting });
});

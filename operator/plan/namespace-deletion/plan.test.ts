import { expect, test } from 'vitest';
import { annotations, FINALIZER } from '../../api/names.ts';
import { type ObjectOfDeletedNamespace, planNamespaceDeletion } from './plan.ts';

const uid = '11111111-2222-4333-8444-555555555555';

function leaver(
  kind: ObjectOfDeletedNamespace['kind'],
  deletionPolicy?: string,
  more: object = {},
): ObjectOfDeletedNamespace {
  const metadata = { name: 'one', namespace: 'acme', uid, annotations: {}, finalizers: [FINALIZER], ...more };
  return { kind, metadata, deletionPolicy };
}

test.each([
  ['ValidatorSet', undefined],
  ['Tenant', 'Suspend'],
  ['Tenant', 'Retain'],
  ['Register', 'Retain'],
] as const)('a %s with the policy %s is released', (kind, policy) => {
  expect(planNamespaceDeletion(leaver(kind, policy))).toEqual({ action: 'release' });
});

test.each([
  ['Tenant', 'Delete', 'the organisation that deletionPolicy Delete'],
  ['Register', 'Tombstone', 'the register that deletionPolicy Tombstone'],
  ['Register', 'Purge', 'the register that deletionPolicy Purge'],
] as const)('a %s with the policy %s stays with a remedy', (kind, policy, what) => {
  const plan = planNamespaceDeletion(leaver(kind, policy));
  expect(plan).toMatchObject({ action: 'keep', message: expect.stringContaining(what) });
  expect(plan).toMatchObject({ message: expect.stringContaining(`${annotations.forceDelete}=${uid}`) });
});

test('force-delete with the right uid releases an object', () => {
  const forced = (value: string) => ({ annotations: { [annotations.forceDelete]: value } });
  expect(planNamespaceDeletion(leaver('Register', 'Purge', forced(uid)))).toEqual({ action: 'release' });
  expect(planNamespaceDeletion(leaver('Register', 'Purge', forced('other')))).toMatchObject({
    action: 'keep',
  });
});

test('an object without the finalizer is not changed', () => {
  const others = { finalizers: ['example.org/other'] };
  expect(planNamespaceDeletion(leaver('Register', 'Purge', others))).toEqual({ action: 'none' });
});

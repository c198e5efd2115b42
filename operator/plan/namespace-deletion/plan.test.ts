import { expect, test } from 'vitest';
import { annotations, FINALIZER } from '../../api/names.ts';
import { type Leaver, planDeparture } from './plan.ts';

const uid = '11111111-2222-4333-8444-555555555555';

function leaver(kind: Leaver['kind'], deletionPolicy?: string, more: object = {}): Leaver {
  const metadata = { name: 'one', namespace: 'acme', uid, annotations: {}, finalizers: [FINALIZER], ...more };
  return { kind, metadata, deletionPolicy };
}

test.each([
  ['ValidatorSet', undefined],
  ['Tenant', 'Suspend'],
  ['Tenant', 'Retain'],
  ['Register', 'Retain'],
] as const)('a %s with the policy %s goes with its namespace', (kind, policy) => {
  expect(planDeparture(leaver(kind, policy))).toEqual({ act: 'go' });
});

test.each([
  ['Tenant', 'Delete', 'the organisation that deletionPolicy Delete'],
  ['Register', 'Tombstone', 'the register that deletionPolicy Tombstone'],
  ['Register', 'Purge', 'the register that deletionPolicy Purge'],
] as const)('a %s with the policy %s stays and says what to do', (kind, policy, what) => {
  const departure = planDeparture(leaver(kind, policy));
  expect(departure).toMatchObject({ act: 'stay', message: expect.stringContaining(what) });
  expect(departure).toMatchObject({ message: expect.stringContaining(`${annotations.forceDelete}=${uid}`) });
});

test('by force goes what has the right uid', () => {
  const forced = (value: string) => ({ annotations: { [annotations.forceDelete]: value } });
  expect(planDeparture(leaver('Register', 'Purge', forced(uid)))).toEqual({ act: 'go' });
  expect(planDeparture(leaver('Register', 'Purge', forced('other')))).toMatchObject({ act: 'stay' });
});

test('what the operator does not hold is left alone', () => {
  const others = { finalizers: ['example.org/other'] };
  expect(planDeparture(leaver('Register', 'Purge', others))).toEqual({ act: 'none' });
});

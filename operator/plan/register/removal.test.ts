import { describe, expect, test } from 'vitest';
import { REGISTER_ID, registerOf } from '../testing/objects.ts';
import { online } from '../testing/register-input.ts';
import { planRegisterRemoval } from './plan.ts';

describe('removal', () => {
  test.each([
    ['Retain', 'none'],
    ['Tombstone', 'sealing-stops'],
    ['Purge', 'data-deleted'],
  ])('%s', (deletionPolicy, disruption) => {
    const { steps } = planRegisterRemoval(registerOf({ deletionPolicy }), online);
    expect(steps).toMatchObject([{ action: 'remove', policy: deletionPolicy, disruption }]);
  });

  test('has no steps for a missing or deleted register', () => {
    const purged = { ...online, deletion: { policy: 'Purge' } } as const;
    expect(planRegisterRemoval(registerOf(), undefined).steps).toEqual([]);
    expect(planRegisterRemoval(registerOf({ deletionPolicy: 'Tombstone' }), purged).steps).toEqual([]);
    expect(planRegisterRemoval(registerOf({ deletionPolicy: 'Purge' }), purged).steps).toEqual([]);
  });

  test('changes a tombstone to a purge', () => {
    const tombstone = { ...online, deletion: { policy: 'Tombstone' } } as const;
    expect(planRegisterRemoval(registerOf({ deletionPolicy: 'Purge' }), tombstone).steps).toHaveLength(1);
  });

  test('of a replicated register waits for a confirmation', () => {
    const replicated = { ...online, isReplicatedElsewhere: true };
    const confirmed = { metadata: { annotations: { 'chancery.dev/confirm-delete': REGISTER_ID } } };
    const spec = { deletionPolicy: 'Purge' };
    expect(planRegisterRemoval(registerOf(spec), replicated).blocked).toContain('confirm-delete');
    expect(planRegisterRemoval(registerOf(spec, confirmed), replicated).steps).toHaveLength(1);
    expect(planRegisterRemoval(registerOf({ deletionPolicy: 'Retain' }), replicated).steps).toHaveLength(1);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { quorum } from '#core/ledger/consensus.ts';
import { setOf } from '../testing/objects.ts';
import { validatorNumbers } from './apply-change.ts';
import type { RegisterFacts, ValidatorFacts } from './facts.ts';
import { planMembership, usableMembers } from './membership.ts';

function factsOf(
  members: readonly ValidatorFacts[],
  validators: Record<string, unknown> = {},
): RegisterFacts {
  return {
    registerId: '0'.repeat(32),
    phase: 'Online',
    title: '',
    devMode: false,
    metadata: {},
    height: 1,
    pendingAttestations: [],
    roster: [],
    policyVersion: 1,
    policy: { validators },
    proposals: [],
    outstanding: [],
    validators: validatorNumbers(members),
    pendingTransactions: 0,
    isReplicatedElsewhere: false,
  };
}

function member(validatorId: string, operational = true): ValidatorFacts {
  return { validatorId, status: 'Active', operational };
}

function membersOf(set: string, count: number, silent = 0): ValidatorFacts[] {
  return Array.from({ length: count }, (_, at) => member(`validator-${set}-${at}`, at >= silent));
}

describe('one change at a time', () => {
  test('no change when the ledger matches the set', () => {
    expect(planMembership(setOf(4), ['main'], factsOf(membersOf('main', 4)))).toEqual({ remaining: 0 });
  });

  test('the lowest new ordinal is added first, with the arithmetic', () => {
    const plan = planMembership(setOf(7), ['main'], factsOf(membersOf('main', 4)));
    expect(plan.next).toEqual({
      change: 'addValidator',
      validatorId: 'validator-main-4',
      summary: 'Add validator-main-4: 4 -> 5 validators, quorum 3 -> 4',
    });
    expect(plan.remaining).toBe(3);
  });

  test('the highest ordinal is removed first', () => {
    const plan = planMembership(setOf(4), ['main'], factsOf(membersOf('main', 7)));
    expect(plan.next).toMatchObject({ change: 'removeValidator', validatorId: 'validator-main-6' });
    expect(plan.next?.summary).toContain('7 -> 6 validators, quorum 5 -> 5, 6 answer');
  });

  test('an unresponsive member is removed before others', () => {
    const members = [...membersOf('main', 5), member('validator-main-5', false), member('validator-main-6')];
    expect(planMembership(setOf(5), ['main'], factsOf(members)).next?.validatorId).toBe('validator-main-5');
  });

  test('a member without a pod is not added', () => {
    const plan = planMembership(setOf(5, { usable: 4 }), ['main'], factsOf(membersOf('main', 4)));
    expect(plan).toEqual({ remaining: 0 });
  });

  test('no member is added where people approve', () => {
    const set = setOf(5, { spec: { registration: { autoApprove: false } } });
    expect(planMembership(set, ['main'], factsOf(membersOf('main', 4)))).toEqual({ remaining: 0 });
  });

  test('a suspended set stays in the register', () => {
    const set = setOf(2, { usable: 0, spec: { suspend: true } });
    expect(planMembership(set, ['main'], factsOf(membersOf('main', 4)))).toEqual({ remaining: 0 });
  });
});

describe('members that are not removed', () => {
  test('a member without which too few answer', () => {
    const plan = planMembership(setOf(3), ['main'], factsOf(membersOf('main', 4, 1)));
    expect(plan.blocked).toBe(
      'validator-main-3 cannot be removed: without it 2 of 3 validators answer and 3 must agree; bring back the others',
    );
  });

  test('a member that minValidators needs', () => {
    const facts = factsOf(membersOf('main', 4), { minValidators: 4 });
    expect(planMembership(setOf(3), ['main'], facts).blocked).toContain('minValidators of the policy is 4');
  });

  test('validators outside the sets of the namespace', () => {
    const facts = factsOf([...membersOf('main', 4), member('validator-elsewhere-0')]);
    expect(planMembership(setOf(4), ['main'], facts)).toEqual({ remaining: 0 });
  });

  test('the old set until the new one is complete', () => {
    const facts = factsOf([...membersOf('old', 4), ...membersOf('main', 2)]);
    const waiting = planMembership(setOf(4, { usable: 2 }), ['main', 'old'], facts);
    expect(waiting).toEqual({ remaining: 0 });
    const all = factsOf([...membersOf('old', 4), ...membersOf('main', 4)]);
    expect(planMembership(setOf(4), ['main', 'old'], all).next).toMatchObject({
      change: 'removeValidator',
      validatorId: 'validator-old-3',
    });
  });

  test('a validator whose name has the name of the set as prefix', () => {
    const facts = factsOf([...membersOf('main', 4), ...membersOf('main-2', 1)]);
    expect(planMembership(setOf(4), ['main'], facts)).toEqual({ remaining: 0 });
  });

  test('a member beyond maxValidators waits', () => {
    const facts = factsOf(membersOf('main', 4), { maxValidators: 4 });
    expect(planMembership(setOf(5), ['main'], facts).blocked).toContain('maxValidators of the policy is 4');
  });
});

test('every sequence of changes ends with the members of the set, and no removal costs the quorum', () => {
  const size = fc.integer({ min: 1, max: 20 });
  const run = fc.property(size, size, fc.integer({ min: 0, max: 10 }), fc.nat(), (from, to, old, pick) => {
    const silent = from + old > 3 ? pick % (Math.floor((from + old - 1) / 3) + 1) : 0;
    let members = [...membersOf('main', from, silent), ...membersOf('old', old)];
    const set = setOf(to);
    for (let step = 0; ; step += 1) {
      expect(step).toBeLessThan(60);
      const { next, blocked } = planMembership(set, ['main', 'old'], factsOf(members));
      if (next === undefined) {
        if (blocked === undefined) {
          const ids = members.map(({ validatorId }) => validatorId);
          expect(ids.toSorted()).toEqual([...usableMembers(set)].toSorted());
        } else expect(silent).toBeGreaterThan(0);
        return;
      }
      if (next.change === 'addValidator') members = [...members, member(next.validatorId)];
      else {
        members = members.filter(({ validatorId }) => validatorId !== next.validatorId);
        const answering = members.filter(({ operational }) => operational).length;
        expect(answering).toBeGreaterThanOrEqual(quorum(members.length));
      }
    }
  });
  fc.assert(run, { numRuns: 300 });
});

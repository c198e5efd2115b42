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
  test('nothing for a set that is as the ledger has it', () => {
    expect(planMembership(setOf(4), ['main'], factsOf(membersOf('main', 4)))).toEqual({ remaining: 0 });
  });

  test('the lowest new ordinal comes first, with the arithmetic', () => {
    const plan = planMembership(setOf(7), ['main'], factsOf(membersOf('main', 4)));
    expect(plan.next).toEqual({
      change: 'addValidator',
      validatorId: 'validator-main-4',
      summary: 'Add validator-main-4: 4 -> 5 validators, quorum 3 -> 4',
    });
    expect(plan.remaining).toBe(3);
  });

  test('the highest ordinal goes first', () => {
    const plan = planMembership(setOf(4), ['main'], factsOf(membersOf('main', 7)));
    expect(plan.next).toMatchObject({ change: 'removeValidator', validatorId: 'validator-main-6' });
    expect(plan.next?.summary).toContain('7 -> 6 validators, quorum 5 -> 5, 6 answer');
  });

  test('who does not answer goes before who does', () => {
    const members = [...membersOf('main', 5), member('validator-main-5', false), member('validator-main-6')];
    expect(planMembership(setOf(5), ['main'], factsOf(members)).next?.validatorId).toBe('validator-main-5');
  });

  test('a member without a pod is not added', () => {
    const plan = planMembership(setOf(5, { usable: 4 }), ['main'], factsOf(membersOf('main', 4)));
    expect(plan).toEqual({ remaining: 0 });
  });

  test('nobody joins where people approve', () => {
    const set = setOf(5, { spec: { registration: { autoApprove: false } } });
    expect(planMembership(set, ['main'], factsOf(membersOf('main', 4)))).toEqual({ remaining: 0 });
  });

  test('a set that is suspended keeps its places', () => {
    const set = setOf(2, { usable: 0, spec: { suspend: true } });
    expect(planMembership(set, ['main'], factsOf(membersOf('main', 4)))).toEqual({ remaining: 0 });
  });
});

describe('who stays', () => {
  test('the member without which too few would answer', () => {
    const plan = planMembership(setOf(3), ['main'], factsOf(membersOf('main', 4, 1)));
    expect(plan.blocked).toBe(
      'validator-main-3 stays: without it 2 of 3 validators answer and 3 must agree; bring back the others',
    );
  });

  test('the member that the policy wants', () => {
    const facts = factsOf(membersOf('main', 4), { minValidators: 4 });
    expect(planMembership(setOf(3), ['main'], facts).blocked).toContain('minValidators of the policy is 4');
  });

  test('validators of other places', () => {
    const facts = factsOf([...membersOf('main', 4), member('validator-elsewhere-0')]);
    expect(planMembership(setOf(4), ['main'], facts)).toEqual({ remaining: 0 });
  });

  test('the old set, until all of the new one have come', () => {
    const facts = factsOf([...membersOf('old', 4), ...membersOf('main', 2)]);
    const waiting = planMembership(setOf(4, { usable: 2 }), ['main', 'old'], facts);
    expect(waiting).toEqual({ remaining: 0 });
    const all = factsOf([...membersOf('old', 4), ...membersOf('main', 4)]);
    expect(planMembership(setOf(4), ['main', 'old'], all).next).toMatchObject({
      change: 'removeValidator',
      validatorId: 'validator-old-3',
    });
  });

  test('a name that begins like the name of the set', () => {
    const facts = factsOf([...membersOf('main', 4), ...membersOf('main-2', 1)]);
    expect(planMembership(setOf(4), ['main'], facts)).toEqual({ remaining: 0 });
  });

  test('a member that would be too many for the policy waits', () => {
    const facts = factsOf(membersOf('main', 4), { maxValidators: 4 });
    expect(planMembership(setOf(5), ['main'], facts).blocked).toContain('maxValidators of the policy is 4');
  });
});

test('every walk ends where the set is, and no removal costs the quorum', () => {
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

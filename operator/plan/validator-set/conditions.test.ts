import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { quorum } from '#core/ledger/consensus.ts';
import type { MemberFacts, SetFacts } from './facts.ts';
import { planSet } from './plan.ts';
import {
  makeFacts,
  makePod,
  makeRegister,
  makeReport,
  makeSet,
  NOW_MS,
  withMembers,
} from './testing/sets.ts';

/** What a member may be to who looks at a set. */
const lives = {
  works: {},
  unasked: { report: undefined, isUnqueried: true },
  silent: { report: undefined },
  absent: { report: undefined, pod: undefined },
} satisfies Readonly<Record<string, Partial<MemberFacts>>>;
type Life = keyof typeof lives;

const of = (...all: readonly Life[]): SetFacts =>
  withMembers(makeFacts(all.length), ({ ordinal }) => lives[all[ordinal] ?? 'works']);

/** The quorum of four, of which one is away and one lacks dockets and has said its height since then. */
function catchingUp(sinceMs: number): SetFacts {
  const behind = makeRegister(4, { behind: 9 });
  return withMembers(of('absent', 'works', 'works', 'works'), ({ ordinal }) =>
    ordinal === 1
      ? {
          report: makeReport(1, [behind]),
          heightSinceMs: new Map([[behind.registerId, sinceMs]]),
        }
      : {},
  );
}

const told = (facts: SetFacts) =>
  planSet(facts).conditionUpdates.find(({ type }) => type === 'QuorumHealthy');

/** A set whose status said this of the quorum. */
function having(status: string, reason: string, facts: SetFacts): SetFacts {
  const before = { type: 'QuorumHealthy', status, reason, message: 'as before', lastTransitionTime: '' };
  const { replicas } = facts.set.spec;
  return { ...facts, set: makeSet({ replicas }, { status: { conditions: [before] } }) };
}

describe('QuorumHealthy while a member that is just back was not asked yet', () => {
  const drained = of('unasked', 'absent', 'works', 'works');

  test.each([
    ['True', 'Reconciled', 'True'],
    ['False', 'QuorumLost', 'False'],
    ['False', 'Suspended', 'Unknown'],
    ['Unknown', 'DependencyNotReady', 'Unknown'],
  ])('says %s as before', (status, reason, now) => {
    const facts = having(status, reason, drained);
    expect(told(facts)?.status).toBe(now);
    expect(planSet(facts).outcome.reason).not.toBe('QuorumLost');
  });

  test('is False once it was asked and is silent', () => {
    const facts = having('True', 'Reconciled', of('silent', 'absent', 'works', 'works'));
    expect(told(facts)).toMatchObject({ status: 'False', reason: 'QuorumLost' });
    expect(planSet(facts).outcome.reason).toBe('QuorumLost');
  });

  test('is no reason to take a broken pod that votes', () => {
    const facts = withMembers(drained, ({ ordinal }) =>
      ordinal === 3 ? { pod: makePod(3, { revision: 'old', isBroken: true }) } : {},
    );
    expect(planSet(facts).actions).toEqual([]);
  });
});

describe('QuorumHealthy while a member catches up', () => {
  test('says as before, and no pod is taken', () => {
    const facts = having('True', 'Reconciled', catchingUp(NOW_MS - 4_000));
    expect(told(facts)?.status).toBe('True');
    expect(planSet(facts).requeueAfterMs).toBe(2_000);
    const outdated = { ...facts.statefulSet, uid: 'sts', replicas: 4, updateRevision: 'newer' };
    expect(planSet({ ...facts, statefulSet: outdated }).actions).toEqual([]);
  });

  test('is False once its height has stood still for 5 s', () => {
    const facts = having('True', 'Reconciled', catchingUp(NOW_MS - 5_000));
    expect(told(facts)).toMatchObject({ status: 'False', reason: 'QuorumLost' });
  });
});

test('False only where the quorum is gone for certain, True only where it is there; unasked, nobody makes a roll safe', () => {
  const life = fc.constantFrom<Life>('works', 'unasked', 'silent', 'absent');
  fc.assert(
    fc.property(fc.array(life, { minLength: 1, maxLength: 10 }), fc.boolean(), (all, hasRegister) => {
      const facts = of(...all);
      const count = (kind: Life) => all.filter((each) => each === kind).length;
      const status = told(hasRegister ? facts : { ...facts, registers: [] })?.status;
      const needed = quorum(all.length);
      expect(status === 'True').toBe(count('works') >= needed);
      expect(status === 'False').toBe(count('works') + count('unasked') < needed);
      const stale = withMembers(facts, ({ ordinal, pod }) =>
        pod === undefined ? {} : { pod: makePod(ordinal, { revision: 'old' }) },
      );
      const replaced = planSet(stale).actions.flatMap((action) =>
        action.kind === 'replace' ? action.replacement : [],
      );
      for (const { member } of replaced) {
        const others = all.filter((_, ordinal) => ordinal !== member.ordinal);
        expect(others.every((each) => each === 'works')).toBe(true);
      }
    }),
  );
});

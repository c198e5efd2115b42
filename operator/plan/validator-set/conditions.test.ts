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

/** States of a member. */
const lives = {
  works: {},
  unasked: { report: undefined, isUnqueried: true },
  silent: { report: undefined },
  absent: { report: undefined, pod: undefined },
} satisfies Readonly<Record<string, Partial<MemberFacts>>>;
type Life = keyof typeof lives;

const of = (...all: readonly Life[]): SetFacts =>
  withMembers(makeFacts(all.length), ({ ordinal }) => lives[all[ordinal] ?? 'works']);

/** A set of four, of which one is unavailable and one is behind with a height since the given time. */
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

const quorumHealthyOf = (facts: SetFacts) =>
  planSet(facts).conditionUpdates.find(({ type }) => type === 'QuorumHealthy');

/** A set with this previous condition QuorumHealthy. */
function having(status: string, reason: string, facts: SetFacts): SetFacts {
  const before = { type: 'QuorumHealthy', status, reason, message: 'as before', lastTransitionTime: '' };
  const { replicas } = facts.set.spec;
  return { ...facts, set: makeSet({ replicas }, { status: { conditions: [before] } }) };
}

describe('QuorumHealthy while a newly ready member is not queried yet', () => {
  const drained = of('unasked', 'absent', 'works', 'works');

  test.each([
    ['True', 'Reconciled', 'True'],
    ['False', 'QuorumLost', 'False'],
    ['False', 'Suspended', 'Unknown'],
    ['Unknown', 'DependencyNotReady', 'Unknown'],
  ])('says %s as before', (status, reason, now) => {
    const facts = having(status, reason, drained);
    expect(quorumHealthyOf(facts)?.status).toBe(now);
    expect(planSet(facts).outcome.reason).not.toBe('QuorumLost');
  });

  test('is False once it was queried and is silent', () => {
    const facts = having('True', 'Reconciled', of('silent', 'absent', 'works', 'works'));
    expect(quorumHealthyOf(facts)).toMatchObject({ status: 'False', reason: 'QuorumLost' });
    expect(planSet(facts).outcome.reason).toBe('QuorumLost');
  });

  test('does not allow the replacement of a broken pod that votes', () => {
    const facts = withMembers(drained, ({ ordinal }) =>
      ordinal === 3 ? { pod: makePod(3, { revision: 'old', isBroken: true }) } : {},
    );
    expect(planSet(facts).actions).toEqual([]);
  });
});

describe('QuorumHealthy while a member catches up', () => {
  test('is unchanged, and no pod is replaced', () => {
    const facts = having('True', 'Reconciled', catchingUp(NOW_MS - 4_000));
    expect(quorumHealthyOf(facts)?.status).toBe('True');
    expect(planSet(facts).requeueAfterMs).toBe(2_000);
    const outdated = { ...facts.statefulSet, uid: 'sts', replicas: 4, updateRevision: 'newer' };
    expect(planSet({ ...facts, statefulSet: outdated }).actions).toEqual([]);
  });

  test('is False once its height has not grown for 5 s', () => {
    const facts = having('True', 'Reconciled', catchingUp(NOW_MS - 5_000));
    expect(quorumHealthyOf(facts)).toMatchObject({ status: 'False', reason: 'QuorumLost' });
  });
});

test('QuorumHealthy is False only for a certainly lost quorum and True only for a proven one; members that are not queried make no rollout safe', () => {
  const life = fc.constantFrom<Life>('works', 'unasked', 'silent', 'absent');
  fc.assert(
    fc.property(fc.array(life, { minLength: 1, maxLength: 10 }), fc.boolean(), (all, hasRegister) => {
      const facts = of(...all);
      const count = (kind: Life) => all.filter((each) => each === kind).length;
      const status = quorumHealthyOf(hasRegister ? facts : { ...facts, registers: [] })?.status;
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

import { describe, expect, test } from 'vitest';
import type { SetFacts } from './facts.ts';
import { planSet } from './plan.ts';
import { planScaling } from './scaling.ts';
import {
  makeFacts,
  makeMember,
  makeRegister,
  makeReport,
  makeSet,
  NOW_MS,
  REGISTER,
  withMembers,
} from './testing/sets.ts';

/** Five members, of which four are desired. */
function shrinking(listed: number): SetFacts {
  const facts = { ...makeFacts(5), set: makeSet({ replicas: 4 }) };
  return withMembers(facts, ({ ordinal }) => ({
    report: makeReport(ordinal, [makeRegister(listed, { isMember: ordinal < listed })]),
  }));
}

test('a set is created at once and scaled up at once', () => {
  expect(
    planScaling({ ...makeFacts(1), set: makeSet({ replicas: 7 }), members: [], statefulSet: undefined }),
  ).toEqual({
    replicas: 7,
  });
  expect(planScaling({ ...makeFacts(4), set: makeSet({ replicas: 7 }) })).toEqual({ replicas: 7 });
});

describe('the removal of a member', () => {
  test('waits until registers have removed it from their lists', () => {
    expect(planScaling(shrinking(5))).toEqual({
      replicas: 5,
      leaving: 'main-4',
      waitingFor: 'main-4 is being removed: register 01234567 must remove it from its list first',
    });
  });

  test('then waits until it has drained', () => {
    const scaling = planScaling(shrinking(4));
    expect(scaling).toMatchObject({
      replicas: 5,
      leaving: 'main-4',
      waitingFor: 'main-4 drains: it passes its transactions to the other members',
    });
    expect(scaling.drain?.name).toBe('main-4');
  });

  test.each([
    ['drained', { state: 'Drained' }],
    [
      'draining for longer than a minute',
      { state: 'Draining', since: new Date(NOW_MS - 61_000).toISOString() },
    ],
  ] as const)('then the pod is deleted: %s', (_, drain) => {
    const facts = withMembers(shrinking(4), ({ ordinal, report }) =>
      ordinal === 4 && report !== undefined ? { report: { ...report, drain } } : {},
    );
    expect(planScaling(facts)).toEqual({ replicas: 4, leaving: 'main-4' });
  });

  test('needs no drain for a silent member', () => {
    const facts = withMembers(shrinking(4), ({ ordinal }) => (ordinal === 4 ? { report: undefined } : {}));
    expect(planScaling(facts)).toEqual({ replicas: 4, leaving: 'main-4' });
  });

  test('waits while no remaining member reports a register', () => {
    const facts = withMembers(shrinking(4), ({ ordinal }) => (ordinal < 4 ? { report: undefined } : {}));
    expect(planScaling(facts).waitingFor).toBeDefined();
  });

  test('waits while members cannot be queried', () => {
    expect(planScaling({ ...shrinking(4), unreachable: 'no identity' }).waitingFor).toContain('no identity');
  });

  describe('with a deleted register', () => {
    const gone = '9'.repeat(32);
    const named = { name: 'former', registerId: gone, isDeleting: false };
    /** The deleted register lists all five members, which have stopped it; the other register lists four. */
    const deleted = (statusOf: (ordinal: number) => string): SetFacts =>
      withMembers(shrinking(4), ({ ordinal, report }) => ({
        report: report && {
          ...report,
          drain: { state: 'Drained' },
          registers: [
            ...report.registers,
            makeRegister(5, { registerId: gone, status: statusOf(ordinal), behind: ordinal }),
          ],
        },
      }));

    test('does not wait for it', () => {
      expect(planScaling(deleted(() => 'Stopped'))).toEqual({ replicas: 4, leaving: 'main-4' });
    });

    test('does not wait for its deleted resource', () => {
      const facts = deleted(() => 'Stopped');
      const registers = [...facts.registers, { ...named, isDeleting: true }];
      expect(planScaling({ ...facts, registers })).toEqual({ replicas: 4, leaving: 'main-4' });
    });

    test.each([
      [
        'while a Register names it, because it may be started again',
        (facts: SetFacts) => ({ registers: [...facts.registers, named] }),
      ],
      [
        'while a remaining member is silent',
        (facts: SetFacts) =>
          withMembers(facts, ({ ordinal }) => (ordinal === 1 ? { report: undefined } : {})),
      ],
    ])('is held %s', (_, change) => {
      const facts = deleted(() => 'Stopped');
      expect(planScaling({ ...facts, ...change(facts) })).toMatchObject({
        replicas: 5,
        waitingFor: 'main-4 is being removed: register 99999999 must remove it from its list first',
      });
    });

    test('waits for other registers only', () => {
      const { registers } = shrinking(5);
      const stalled = { ...named, isDeleting: true, blocked: 'InvalidReference: it was deleted' };
      const scaling = planScaling({ ...shrinking(5), registers: [...registers, stalled] });
      expect(scaling.waitingFor).toBe(
        'main-4 is being removed: register 01234567 must remove it from its list first',
      );
      expect(scaling.isStalled).toBeUndefined();
    });

    test('waits while a member still seals it', () => {
      expect(planScaling(deleted((ordinal) => (ordinal === 2 ? 'Running' : 'Stopped'))).replicas).toBe(5);
    });

    test('a member that is behind in it is not impaired', () => {
      const four = { ...makeFacts(4), set: makeSet({ replicas: 4 }) };
      const facts = withMembers(four, ({ ordinal, report }) => ({
        report: report && {
          ...report,
          registers: [
            ...report.registers,
            makeRegister(4, {
              registerId: gone,
              status: 'Stopped',
              behind: ordinal,
              isProposer: ordinal === 3,
            }),
          ],
        },
      }));
      const { outcome, members, conditionUpdates } = planSet(facts);
      expect(outcome).toMatchObject({ state: 'ready' });
      expect(members.map(({ phase }) => phase)).toEqual(['Active', 'Active', 'Active', 'Active']);
      expect(conditionUpdates.find(({ type }) => type === 'Degraded')).toMatchObject({ status: 'False' });
    });
  });

  test('stops with the message of a register that refuses', () => {
    const registers = [
      { name: 'ledger', registerId: REGISTER, isDeleting: false, blocked: 'minValidators is 5' },
    ];
    expect(planScaling({ ...shrinking(5), registers })).toMatchObject({
      replicas: 5,
      isStalled: true,
      waitingFor: 'main-4 is not removed: Register ledger: minValidators is 5',
    });
  });
});

test('scaling from seven to four removes one member at a time', () => {
  const facts = { ...makeFacts(7), set: makeSet({ replicas: 4 }), registers: [] };
  const drained = withMembers(facts, ({ ordinal }) => ({
    report: { ...makeReport(ordinal, []), drain: { state: 'Drained' as const } },
  }));
  expect(planScaling(drained)).toEqual({ replicas: 6, leaving: 'main-6' });
});

test('a suspended set stops completely and resumes with all members, also when fewer are desired by then', () => {
  expect(planScaling({ ...makeFacts(4), set: makeSet({ replicas: 4, suspend: true }) })).toEqual({
    replicas: 0,
  });
  const members = Array.from({ length: 7 }, (_, each) => ({
    name: `main-${each}`,
    ordinal: each,
    phase: 'Suspended',
  }));
  const set = makeSet({ replicas: 4 }, { status: { members } });
  const statefulSet = { uid: 'sts', replicas: 0, updateRevision: 'new', claimSize: '1Gi' };
  const scaling = planScaling({
    ...makeFacts(4),
    set,
    statefulSet,
    members: [makeMember(0, 7, { pod: undefined, report: undefined })],
  });
  expect(scaling.replicas).toBe(7);
});

test('a recreated StatefulSet keeps the existing pods', () => {
  const facts = { ...makeFacts(5), set: makeSet({ replicas: 4 }), statefulSet: undefined };
  expect(planScaling(facts).replicas).toBe(5);
});

test('a drain is cancelled for a remaining member, but not for the one that is removed', () => {
  const drained = { state: 'Drained' as const };
  const facts = {
    ...shrinking(4),
    statefulSet: { uid: 'sts', replicas: 4, updateRevision: 'new', claimSize: '1Gi' },
  };
  const actions = (ordinal: number) =>
    planSet(
      withMembers(facts, (each) =>
        each.ordinal === ordinal && each.report !== undefined
          ? { report: { ...each.report, drain: drained } }
          : {},
      ),
    ).actions;
  expect(actions(4)).toEqual([]);
  expect(actions(1)).toMatchObject([{ kind: 'undrain', member: { name: 'main-1' } }]);
});

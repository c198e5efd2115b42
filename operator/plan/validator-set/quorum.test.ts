import { describe, expect, test } from 'vitest';
import { quorum } from '#core/ledger/consensus.ts';
import { validatorId } from '../../api/names.ts';
import type { RegisterReport } from './facts.ts';
import { planSet } from './plan.ts';
import {
  losingQuorumWithout,
  nodeFaultTolerance,
  quorumArithmetic,
  tallies,
  withoutProvenQuorum,
} from './quorum.ts';
import {
  makeFacts,
  makeMember,
  makePod,
  makeRegister,
  makeReport,
  makeSet,
  NOW_MS,
  withMembers,
} from './testing/sets.ts';

const sizes = Array.from({ length: 100 }, (_, each) => each + 1);

describe('for every size up to 100', () => {
  test.each(sizes)(
    'of %i members: two quorums share an honest member, and a quorum remains after the tolerated failures',
    (size) => {
      const { quorum: needed, faultTolerance } = quorumArithmetic(size, []);
      const faulty = Math.floor((size - 1) / 3);
      expect(2 * needed - size).toBeGreaterThan(faulty);
      expect(size - faultTolerance).toBeGreaterThanOrEqual(needed);
      expect(faultTolerance).toBe(faulty);
    },
  );

  test.each(sizes)('of %i members: no member is replaced if fewer than a quorum would remain', (size) => {
    for (const away of [0, 1, Math.floor((size - 1) / 3), Math.ceil(size / 3)]) {
      const facts = withMembers(makeFacts(size), ({ ordinal }) =>
        ordinal < away ? { report: undefined } : {},
      );
      const known = tallies(facts);
      const live = size - Math.min(away, size);
      if (live === 0) {
        expect(known).toEqual([]);
        continue;
      }
      const last = validatorId(`main-${size - 1}`);
      expect(withoutProvenQuorum(known).length > 0).toBe(live < quorum(size));
      expect(losingQuorumWithout(last, known).length > 0).toBe(live === quorum(size));
    }
  });
});

test('the arithmetic follows the strictest register', () => {
  const strict = { size: 7, quorum: 7 };
  expect(quorumArithmetic(7, [{ size: 7, quorum: 5 }, strict])).toEqual({
    size: 7,
    quorum: 7,
    faultTolerance: 0,
  });
  expect(quorumArithmetic(0, [])).toEqual({ size: 0, quorum: 0, faultTolerance: 0 });
});

test('a member that is behind, halted or not listed does not count; a reported quorum below the formula is ignored', () => {
  const change = (ordinal: number) =>
    [
      makeRegister(4, { behind: 2 }),
      makeRegister(4, { status: 'Halted' }),
      makeRegister(4, { isMember: false }),
      makeRegister(4, { quorum: 1 }),
    ][ordinal] ?? makeRegister(4);
  const facts = withMembers(makeFacts(4), ({ ordinal }) => ({
    report: makeReport(ordinal, [change(ordinal)]),
  }));
  expect(tallies(facts)).toEqual([
    {
      registerId: makeRegister(4).registerId,
      size: 4,
      quorum: 3,
      live: [validatorId('main-3')],
      undecided: [],
    },
  ]);
});

test('a register that all reporting members have stopped has no tally', () => {
  const stopped = makeRegister(4, { status: 'Stopped' });
  const knownTo = (count: number, others: readonly RegisterReport[]) =>
    withMembers(makeFacts(4), ({ ordinal }) => ({
      report: makeReport(ordinal, ordinal < count ? [stopped] : others),
    }));
  expect(tallies(knownTo(2, []))).toEqual([]);
  expect(tallies(knownTo(3, [makeRegister(4)]))).toHaveLength(1);
});

test('a member of another set counts while a member of this set has heard it recently', () => {
  const members = ['validator-main-0', 'validator-main-1', 'validator-old-0', 'validator-old-1'];
  const register = makeRegister(4, { members });
  const heard = [
    { validatorId: 'validator-old-0', heardAt: new Date(NOW_MS - 5_000).toISOString() },
    { validatorId: 'validator-old-1', heardAt: new Date(NOW_MS - 60_000).toISOString() },
  ];
  const facts = withMembers(makeFacts(2), ({ ordinal }) => ({
    report: { ...makeReport(ordinal, [register]), heard },
  }));
  expect(tallies(facts)[0]?.live).toEqual(['validator-main-0', 'validator-main-1', 'validator-old-0']);
});

test('node losses are counted from the fullest node; members on unknown nodes do not count', () => {
  const place = (nodes: readonly (string | undefined)[]) => {
    const size = nodes.length;
    const members = nodes.map((node, ordinal) =>
      makeMember(ordinal, size, { pod: makePod(ordinal, { node }) }),
    );
    const facts = { ...makeFacts(size), set: makeSet({ replicas: size }), members };
    return nodeFaultTolerance(members, tallies(facts));
  };
  expect(place(['a', 'b', 'c', 'd'])).toBe(1);
  expect(place(['a', 'a', 'b', 'c'])).toBe(0);
  expect(place(['a', 'b', 'c', 'd', 'e', 'f', 'g'])).toBe(2);
  expect(place(['a', 'b', 'c', undefined])).toBe(0);
  expect(nodeFaultTolerance([], [])).toBe(0);
});

describe('an answering member that does not vote', () => {
  const message = 'There is no room on the volume of the log';
  const full = (ordinal: number) =>
    withMembers(makeFacts(4), (each) =>
      each.ordinal === ordinal && each.report !== undefined
        ? { report: { ...each.report, conditions: [{ type: 'Paused', reason: 'disk full', message }] } }
        : {},
    );

  test('does not count', () => {
    const known = tallies(full(1));
    expect(known[0]?.live).toEqual(['validator-main-0', 'validator-main-2', 'validator-main-3']);
    expect(losingQuorumWithout('validator-main-3', known)).toHaveLength(1);
    expect(losingQuorumWithout('validator-main-1', known)).toHaveLength(0);
  });

  test('counts while it is paused manually, because it still votes', () => {
    const report = makeReport(1, [makeRegister(4, { status: 'Paused' })]);
    const facts = withMembers(makeFacts(4), ({ ordinal }) => (ordinal === 1 ? { report } : {}));
    expect(tallies(facts)[0]?.live).toHaveLength(4);
  });

  test('is named with its reason', () => {
    const status = { members: [0, 1, 2, 3].map((each) => ({ name: `main-${each}`, publicKey: 'key' })) };
    const { conditionUpdates } = planSet({ ...full(1), set: makeSet({ replicas: 4 }, { status }) });
    expect(conditionUpdates.find(({ type }) => type === 'Degraded')).toMatchObject({
      status: 'True',
      message: `main-1: ${message}`,
    });
  });
});

test('a register that its resource has stopped does not make QuorumHealthy unknown', () => {
  const stopped = withMembers(makeFacts(4), ({ ordinal }) => ({
    report: makeReport(ordinal, [makeRegister(4, { status: 'Stopped' })]),
  }));
  const { conditionUpdates } = planSet(stopped);
  expect(conditionUpdates.find(({ type }) => type === 'QuorumHealthy')).toMatchObject({ status: 'True' });
});

import { describe, expect, test } from 'vitest';
import type { MemberFacts, SetFacts } from './facts.ts';
import { planRollout } from './rollout.ts';
import {
  makeFacts,
  makePod,
  makeRegister,
  makeReport,
  makeSet,
  NOW_MS,
  withMembers,
} from './testing/sets.ts';

const old = (ordinal: number, changes = {}) => ({ pod: makePod(ordinal, { revision: 'old', ...changes }) });
/** All members have the old revision. */
const outdated = (size: number): SetFacts => withMembers(makeFacts(size), ({ ordinal }) => old(ordinal));
const change = (facts: SetFacts, name: string, changes: Partial<MemberFacts>): SetFacts =>
  withMembers(facts, (each) => (each.name === name ? changes : {}));

test('a set of the current revision is not changed', () => {
  expect(planRollout(makeFacts(4))).toEqual({ outdated: [] });
});

describe('order', () => {
  test('is by descending ordinal, with the numbers that prove it safe', () => {
    const { next, outdated: names } = planRollout(outdated(4));
    expect(names).toHaveLength(4);
    expect(next).toMatchObject({ uid: 'uid-3', how: 'evict', isForced: false });
    expect(next?.proof).toBe(
      '4 of 4 members answered; register 01234567: 4 of 4 answer and are caught up, 3 must agree; one is replaced',
    );
  });

  test('has proposers last', () => {
    const report = makeReport(3, [makeRegister(4, { isProposer: true })]);
    expect(planRollout(change(outdated(4), 'main-3', { report })).next?.member.name).toBe('main-2');
  });

  test('ignores proposers of a stopped register', () => {
    const registers = [
      makeRegister(4),
      makeRegister(4, { registerId: '9'.repeat(32), status: 'Stopped', isProposer: true }),
    ];
    const facts = change(outdated(4), 'main-3', { report: makeReport(3, registers) });
    expect(planRollout(facts).next?.member.name).toBe('main-3');
  });

  test.each([
    ['is behind', makeReport(1, [makeRegister(4, { behind: 9 })])],
    [
      'has no space to sign anything',
      {
        ...makeReport(1, [makeRegister(4)]),
        conditions: [{ type: 'Paused', reason: 'disk full', message: 'full' }],
      },
    ],
  ])('has a member that %s before others', (_, report) => {
    const { next } = planRollout(change(outdated(4), 'main-1', { report }));
    expect(next?.member.name).toBe('main-1');
    expect(next?.proof).toContain('3 of 4 answer and are caught up, 3 must agree');
  });

  test('replaces only a broken pod of a bad version when the others have the current revision again', () => {
    const broken = makePod(3, {
      revision: 'bad',
      isReady: false,
      isBroken: true,
      trouble: 'CrashLoopBackOff',
    });
    const facts = change(makeFacts(4), 'main-3', { pod: broken, report: undefined });
    expect(planRollout(facts)).toMatchObject({ outdated: ['main-3'], next: { uid: 'uid-3', how: 'delete' } });
  });
});

describe('no pod is replaced', () => {
  const refused: readonly (readonly [string, SetFacts, object])[] = [
    [
      'while another member does not answer',
      change(outdated(7), 'main-0', { report: undefined }),
      { reason: 'RolloutBlocked', message: 'main-0 did not answer within 5 s' },
    ],
    [
      'while another member is not ready',
      change(
        outdated(7),
        'main-0',
        old(0, { isReady: false, isBroken: true, trouble: 'CrashLoopBackOff', revision: 'new' }),
      ),
      { reason: 'RolloutBlocked', message: 'main-0 is not ready: CrashLoopBackOff' },
    ],
    [
      'while a pod terminates',
      change(outdated(7), 'main-6', old(6, { isTerminating: true })),
      { reason: 'WaitingForPods', message: 'main-6 is not ready yet' },
    ],
    [
      'while the cache still has the pod that was evicted last',
      { ...outdated(4), evictedUid: 'uid-3' },
      { reason: 'WaitingForPods', message: 'main-3 is being replaced' },
    ],
    [
      'of a set that tolerates no failure',
      outdated(3),
      {
        reason: 'QuorumAtRisk',
        message: 'register 01234567: 3 of 3 answer and are caught up, 3 must agree; without main-2 2 remain',
      },
    ],
    [
      'while members cannot be queried',
      { ...outdated(4), unreachable: 'no identity' },
      { reason: 'RolloutBlocked', message: 'members cannot be queried: no identity' },
    ],
    [
      'while no member reports a bound Register',
      { ...outdated(4), registers: [{ name: 'other', registerId: 'f'.repeat(32), isDeleting: false }] },
      { reason: 'RolloutBlocked', message: 'no member reports Register other' },
    ],
    [
      'before the last replaced member was ready for minReadySeconds',
      change(outdated(4), 'main-3', { pod: makePod(3, { readySinceMs: NOW_MS - 4_000 }) }),
      {
        reason: 'Progressing',
        message: 'the last replaced member must be ready for 10 s (update.minReadySeconds)',
        retryAfterMs: 6_000,
      },
    ],
    [
      'while the volume of another member is being expanded',
      change(outdated(4), 'main-0', {
        claim: { name: 'data-main-0', uid: 'c', requested: '1Gi', capacity: '512Mi', conditions: [] },
      }),
      { reason: 'RolloutBlocked', message: 'the volume of main-0 is being expanded' },
    ],
    [
      'when two members have different histories',
      change(outdated(4), 'main-1', {
        report: makeReport(1, [makeRegister(4, { roots: [{ height: 10, root: 'fork' }] })]),
      }),
      {
        reason: 'QuorumAtRisk',
        message: 'register 01234567, docket 10: main-0 and main-1 have different histories',
      },
    ],
    [
      'while other sets are rolled out',
      { ...outdated(4), rolloutLimit: '2 other sets roll' },
      { reason: 'Progressing', message: '2 other sets roll' },
    ],
    [
      'while the update is paused',
      { ...outdated(4), set: makeSet({ update: { paused: true } }) },
      { reason: 'Paused' },
    ],
  ];
  test.each(refused)('%s', (_, facts, blocked) => {
    const plan = planRollout(facts);
    expect(plan.next).toBeUndefined();
    expect(plan.blocked).toMatchObject(blocked);
  });

  test('with the strategy OnDelete', () => {
    const facts = { ...outdated(4), set: makeSet({ update: { strategy: 'OnDelete' } }) };
    const { outdated: names, next, blocked } = planRollout(facts);
    expect([names.length, next, blocked]).toEqual([4, undefined, undefined]);
  });

  test('before the new template is observed', () => {
    const statefulSet = { uid: 'sts', replicas: 4, claimSize: '1Gi' };
    expect(planRollout({ ...outdated(4), statefulSet })).toEqual({ outdated: [] });
  });
});

describe('a lost quorum', () => {
  const dark = (ordinal: number) => ({
    report: undefined,
    ...old(ordinal, { isReady: false, isBroken: true }),
  });

  test('allows the replacement of broken members', () => {
    const facts = withMembers(outdated(4), ({ ordinal }) => (ordinal < 2 ? dark(ordinal) : {}));
    expect(planRollout(facts).next).toMatchObject({ uid: 'uid-1', how: 'delete' });
  });

  test('does not allow the replacement of a member on a silent node', () => {
    const away = (ordinal: number) => ({ report: undefined, ...old(ordinal, { isReady: false }) });
    const facts = withMembers(outdated(4), ({ ordinal }) => (ordinal < 2 ? away(ordinal) : {}));
    expect(planRollout(facts).next).toBeUndefined();
  });
});

test('a set of one member is replaced, because an interruption is unavoidable', () => {
  expect(planRollout(outdated(1)).next?.uid).toBe('uid-0');
});

test('a force-roll annotation with the uid of the pod skips every gate', () => {
  const facts = change(outdated(3), 'main-1', old(1, { isForced: true }));
  expect(planRollout(facts).next).toMatchObject({ uid: 'uid-1', how: 'delete', isForced: true });
});

test('without registers no quorum is at risk', () => {
  const alone = withMembers(outdated(3), ({ ordinal }) => ({ report: makeReport(ordinal, []) }));
  expect(planRollout({ ...alone, registers: [] }).next?.uid).toBe('uid-2');
});

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
/** Everybody is of the former revision. */
const outdated = (size: number): SetFacts => withMembers(makeFacts(size), ({ ordinal }) => old(ordinal));
const change = (facts: SetFacts, name: string, changes: Partial<MemberFacts>): SetFacts =>
  withMembers(facts, (each) => (each.name === name ? changes : {}));

test('a set of the wanted revision is left alone', () => {
  expect(planRollout(makeFacts(4))).toEqual({ outdated: [] });
});

describe('order', () => {
  test('from the highest ordinal down, with the numbers that make it safe', () => {
    const { next, outdated: names } = planRollout(outdated(4));
    expect(names).toHaveLength(4);
    expect(next).toMatchObject({ uid: 'uid-3', how: 'evict', isForced: false });
    expect(next?.proof).toBe(
      '4 of 4 members answered; register 01234567: 4 of 4 answer and are caught up, 3 must agree; one goes',
    );
  });

  test('who proposes goes last', () => {
    const report = makeReport(3, [makeRegister(4, { isProposer: true })]);
    expect(planRollout(change(outdated(4), 'main-3', { report })).next?.member.name).toBe('main-2');
  });

  test('who proposes in a register that was stopped goes in its turn', () => {
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
      'has no room to sign anything',
      {
        ...makeReport(1, [makeRegister(4)]),
        conditions: [{ type: 'Paused', reason: 'disk full', message: 'full' }],
      },
    ],
  ])('who %s goes before those that the quorum needs', (_, report) => {
    const { next } = planRollout(change(outdated(4), 'main-1', { report }));
    expect(next?.member.name).toBe('main-1');
    expect(next?.proof).toContain('3 of 4 answer and are caught up, 3 must agree');
  });

  test('a pod of a bad version that is broken goes first, and only it: the others are of the wanted revision again', () => {
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

describe('nobody is taken', () => {
  const refused: readonly (readonly [string, SetFacts, object])[] = [
    [
      'while another member does not answer',
      change(outdated(7), 'main-0', { report: undefined }),
      { reason: 'RolloutBlocked', message: 'main-0 did not answer within 5 s' },
    ],
    [
      'while another one is not ready',
      change(
        outdated(7),
        'main-0',
        old(0, { isReady: false, isBroken: true, trouble: 'CrashLoopBackOff', revision: 'new' }),
      ),
      { reason: 'RolloutBlocked', message: 'main-0 is not ready: CrashLoopBackOff' },
    ],
    [
      'while a pod is on its way out',
      change(outdated(7), 'main-6', old(6, { isTerminating: true })),
      { reason: 'WaitingForPods', message: 'main-6 is not ready yet' },
    ],
    [
      'while the cache has not seen the last one go',
      { ...outdated(4), evictedUid: 'uid-3' },
      { reason: 'WaitingForPods', message: 'main-3 is being replaced' },
    ],
    [
      'of a set that tolerates no failure',
      outdated(3),
      {
        reason: 'QuorumAtRisk',
        message:
          'register 01234567: 3 of 3 answer and are caught up, 3 must agree; without main-2 2 are left',
      },
    ],
    [
      'while members cannot be asked at all',
      { ...outdated(4), unreachable: 'no identity' },
      { reason: 'RolloutBlocked', message: 'members cannot be asked: no identity' },
    ],
    [
      'while a Register is bound of which nobody tells',
      { ...outdated(4), registers: [{ name: 'other', registerId: 'f'.repeat(32), isDeleting: false }] },
      { reason: 'RolloutBlocked', message: 'no member tells about Register other' },
    ],
    [
      'before the one replaced last was ready for long enough',
      change(outdated(4), 'main-3', { pod: makePod(3, { readySinceMs: NOW_MS - 4_000 }) }),
      {
        reason: 'Progressing',
        message: 'the member replaced last must be ready for 10 s',
        retryAfterMs: 6_000,
      },
    ],
    [
      'while the volume of another one grows',
      change(outdated(4), 'main-0', {
        claim: { name: 'data-main-0', uid: 'c', requested: '1Gi', capacity: '512Mi', conditions: [] },
      }),
      { reason: 'RolloutBlocked', message: 'the volume of main-0 grows' },
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
      'while other sets roll',
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

  test('when the strategy leaves it to people', () => {
    const facts = { ...outdated(4), set: makeSet({ update: { strategy: 'OnDelete' } }) };
    const { outdated: names, next, blocked } = planRollout(facts);
    expect([names.length, next, blocked]).toEqual([4, undefined, undefined]);
  });

  test('before the cluster has seen the new template', () => {
    const statefulSet = { uid: 'sts', replicas: 4, claimSize: '1Gi' };
    expect(planRollout({ ...outdated(4), statefulSet })).toEqual({ outdated: [] });
  });
});

describe('a quorum that is lost', () => {
  const dark = (ordinal: number) => ({
    report: undefined,
    ...old(ordinal, { isReady: false, isBroken: true }),
  });

  test('lets members be replaced that do not work', () => {
    const facts = withMembers(outdated(4), ({ ordinal }) => (ordinal < 2 ? dark(ordinal) : {}));
    expect(planRollout(facts).next).toMatchObject({ uid: 'uid-1', how: 'delete' });
  });

  test('lets nobody be taken of whom only the node is silent', () => {
    const away = (ordinal: number) => ({ report: undefined, ...old(ordinal, { isReady: false }) });
    const facts = withMembers(outdated(4), ({ ordinal }) => (ordinal < 2 ? away(ordinal) : {}));
    expect(planRollout(facts).next).toBeUndefined();
  });
});

test('a set of one is replaced: it is away whatever anybody does', () => {
  expect(planRollout(outdated(1)).next?.uid).toBe('uid-0');
});

test('an annotation with the uid of the pod goes before every gate', () => {
  const facts = change(outdated(3), 'main-1', old(1, { isForced: true }));
  expect(planRollout(facts).next).toMatchObject({ uid: 'uid-1', how: 'delete', isForced: true });
});

test('without registers there is nothing that could be lost', () => {
  const alone = withMembers(outdated(3), ({ ordinal }) => ({ report: makeReport(ordinal, []) }));
  expect(planRollout({ ...alone, registers: [] }).next?.uid).toBe('uid-2');
});

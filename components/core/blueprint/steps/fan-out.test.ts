import { describe, expect, it } from 'vitest';
import { parseTimestamp } from '../../encoding/timestamp.ts';
import { listBlockers } from './blockers.ts';
import { branchesAt, foldInstance, stateAt } from './instance.ts';
import { judgeStep } from './judge.ts';
import { compiled, moment, Walk } from './testing/walks.ts';

type Route = readonly [id: string, next: readonly number[], deadline?: string];

type DrawnAction = readonly [id: number, routes: readonly Route[], requiredPriorActions?: readonly number[]];

/** A definition of actions that all have one open sender; the first one starts, and all are rejected back to 0. */
function definition(actions: readonly DrawnAction[]) {
  return {
    id: 'drawn',
    participants: [{ id: 'p' }],
    actions: actions.map(([id, routes, requiredPriorActions = []], index) => ({
      id,
      sender: 'p',
      isStartingAction: index === 0,
      requiredPriorActions,
      rejectionConfig: { targetActionId: 0 },
      routes: routes.map(([route, nextActionIds, branchDeadline]) => ({
        id: route,
        nextActionIds,
        ...(branchDeadline !== undefined && { branchDeadline }),
      })),
    })),
  };
}

function start(...actions: readonly DrawnAction[]): Walk {
  return new Walk(compiled(definition(actions)));
}

function instanceOf(walk: Walk) {
  return foldInstance(walk.steps.map(({ sealed }) => sealed));
}

const at = (seconds: number) => parseTimestamp(moment(seconds));

describe('fan-outs', () => {
  const fork: Route = ['fork', [1, 2]];

  it('joins when all branches have come', () => {
    const w = start(
      [0, [fork]],
      [1, [['on', [3]]]],
      [2, [['on', [4]]]],
      [3, [['end', []]], [1, 2, 4]],
      [4, [['on', [3]]]],
    );
    w.take(0, { routeId: 'fork' });
    expect(w.current).toEqual(['1 0.fork.0', '2 0.fork.1']);
    w.take(1, { routeId: 'on' });
    expect(w.current).toEqual(['2 0.fork.1', '3']);
    expect(w.refusal(3, { routeId: 'end' })).toEqual(['VAL_BP_003']);
    expect(listBlockers(w.workflow, w.routing?.current ?? [], 3, at(0))).toEqual([2]);
    w.take(2, { routeId: 'on' });
    // The branch has not yet activated its last action, and still the join waits.
    expect(w.current).toEqual(['3', '4 0.fork.1']);
    expect(w.refusal(3, { routeId: 'end' })).toEqual(['VAL_BP_003']);
    w.take(4, { routeId: 'on' });
    expect(w.current).toEqual(['3']);
    expect(w.take(3, { routeId: 'end' })).toBe(true);
    expect(w.routing?.ended).toBe('Completed');
    expect(
      instanceOf(w)?.branches.map(({ id, state, lastTransactionId }) => [
        id,
        state,
        Number(lastTransactionId),
      ]),
    ).toEqual([
      ['0.fork.0', 'Completed', 2],
      ['0.fork.1', 'Completed', 4],
    ]);
  });

  it('waits for a longer branch while its required action is not yet current', () => {
    const w = start(
      [0, [fork]],
      [1, [['on', [3]]]],
      [2, [['on', [5]]]],
      [3, [['end', []]], [1, 4]],
      [4, [['on', [3]]]],
      [
        5,
        [
          ['on', [4]],
          ['out', []],
        ],
      ],
    );
    w.take(0, { routeId: 'fork' });
    w.take(1, { routeId: 'on' });
    w.take(2, { routeId: 'on' });
    expect(w.refusal(3, { routeId: 'end' })).toEqual(['VAL_BP_003']);
    // The branch ends elsewhere: the required action can no longer come.
    w.take(5, { routeId: 'out' });
    expect(w.refusal(3, { routeId: 'end' })).toEqual([]);
  });

  it('takes an action without required ones once for each branch that comes', () => {
    const w = start([0, [fork]], [1, [['on', [3]]]], [2, [['on', [3]]]], [3, [['end', []]]]);
    w.take(0, { routeId: 'fork' });
    w.take(1, { routeId: 'on' });
    w.take(3, { routeId: 'end' });
    expect(w.routing?.ended).toBeUndefined();
    w.take(2, { routeId: 'on' });
    expect(w.take(3, { routeId: 'end' })).toBe(true);
    expect(w.routing?.ended).toBe('Completed');
  });

  it('nests, and leaves the inner branches at their join', () => {
    const w = start(
      [0, [fork]],
      [1, [['in', [3, 4]]]],
      [2, [['on', [6]]]],
      [3, [['on', [5]]]],
      [4, [['on', [5]]]],
      [5, [['on', [6]]], [3, 4]],
      [6, [['end', []]], [2, 5]],
    );
    w.take(0, { routeId: 'fork' });
    w.take(1, { routeId: 'in' });
    expect(w.current).toEqual(['2 0.fork.1', '3 0.fork.0/1.in.0', '4 0.fork.0/1.in.1']);
    w.take(4, { routeId: 'on' });
    expect(w.current).toEqual(['2 0.fork.1', '3 0.fork.0/1.in.0', '5 0.fork.0']);
    expect(w.refusal(5, { routeId: 'on' })).toEqual(['VAL_BP_003']);
    w.take(3, { routeId: 'on' });
    expect(w.current).toEqual(['2 0.fork.1', '5 0.fork.0']);
    w.take(5, { routeId: 'on' });
    expect(w.current).toEqual(['2 0.fork.1', '6']);
    w.take(2, { routeId: 'on' });
    w.take(6, { routeId: 'end' });
    expect(w.routing?.ended).toBe('Completed');
    expect(instanceOf(w)?.branches.map(({ id, state }) => `${id} ${state}`)).toEqual([
      '0.fork.0 Completed',
      '0.fork.0/1.in.0 Completed',
      '0.fork.0/1.in.1 Completed',
      '0.fork.1 Completed',
    ]);
  });

  it('loops: the same fan-out again begins its branches anew', () => {
    const w = start(
      [0, [fork]],
      [
        1,
        [
          ['on', [3]],
          ['round', [1]],
        ],
      ],
      [2, [['on', [3]]]],
      [
        3,
        [
          ['again', [0]],
          ['end', []],
        ],
        [1, 2],
      ],
    );
    for (let round = 0; round < 3; round += 1) {
      w.take(0, { routeId: 'fork' });
      w.take(1, { routeId: 'round' });
      expect(w.current).toEqual(['1 0.fork.0', '2 0.fork.1']);
      w.take(1, { routeId: 'on' });
      w.take(2, { routeId: 'on' });
      expect(w.take(3, { routeId: 'again' })).toBe(true);
      expect(w.current).toEqual(['0']);
    }
    expect(instanceOf(w)?.branches.map(({ state }) => state)).toEqual(['Completed', 'Completed']);
  });

  it('merges a rejected branch with the fan-out that is taken again', () => {
    const w = start([0, [fork]], [1, [['end', []]]], [2, [['end', []]]]);
    w.take(0, { routeId: 'fork' });
    w.take(1, { isRejection: true });
    expect(w.current).toEqual(['0', '2 0.fork.1']);
    expect(instanceOf(w)?.branches.map(({ state }) => state)).toEqual(['Rejected', 'Active']);
    w.take(0, { routeId: 'fork' });
    expect(w.current).toEqual(['1 0.fork.0', '2 0.fork.1']);
  });

  it('writes route ids with dots and slashes into keys that can be read', () => {
    const w = start(
      [0, [['a/b.%2F', [1, 2]]]],
      [1, [['end', []]]],
      [
        2,
        [
          ['on', [2]],
          ['end', []],
        ],
      ],
    );
    w.take(0, { routeId: 'a/b.%2F' });
    expect(w.current).toEqual(['1 0.a%2Fb.%252F.0', '2 0.a%2Fb.%252F.1']);
    w.take(2, { routeId: 'on' });
    expect(instanceOf(w)?.branches.map(({ sourceRouteId }) => sourceRouteId)).toEqual(['a/b.%2F', 'a/b.%2F']);
  });
});

describe('deadlines', () => {
  const forked = () =>
    start(
      [0, [['fork', [1, 2], 'PT1M']]],
      [1, [['on', [3]]]],
      [2, [['on', [3]]]],
      [3, [['end', []]], [1, 2]],
    );

  it('refuses a step past its deadline, by either clock', () => {
    const w = forked();
    w.take(0, { routeId: 'fork' });
    expect(w.routing?.current.map(({ until }) => until)).toEqual([moment(60), moment(60)]);
    w.seconds = 60;
    expect(w.refusal(1, { routeId: 'on' })).toEqual([]);
    w.take(1, { routeId: 'on' });
    const { record, context } = w.last ?? expect.unreachable();
    expect(judgeStep(record, { ...context, nowTicks: at(60) })).toEqual([]);
    expect(judgeStep(record, { ...context, nowTicks: at(60) + 1n })).toMatchObject([{ code: 'VAL_BP_003' }]);
    w.seconds = 60.001;
    expect(w.refusal(2, { routeId: 'on' })).toEqual(['VAL_BP_003']);
  });

  it('joins without a branch that is past its deadline, once the ledger is past it too', () => {
    const w = forked();
    w.take(0, { routeId: 'fork' });
    w.take(1, { routeId: 'on' });
    expect(w.routing?.current).toEqual([
      { actionId: 2, branchKey: '0.fork.1', until: moment(60) },
      { actionId: 3 },
    ]);
    expect(w.refusal(3, { routeId: 'end' })).toEqual(['VAL_BP_003']);
    w.seconds = 61;
    expect(listBlockers(w.workflow, w.routing?.current ?? [], 3, at(61))).toEqual([]);
    expect(w.take(3, { routeId: 'end' })).toBe(true);
    expect(w.routing).toMatchObject({ current: [], ended: 'Completed' });
    expect(instanceOf(w)?.branches.map(({ state }) => state)).toEqual(['Completed', 'TimedOut']);
    const { record, context } = w.last ?? expect.unreachable();
    expect(judgeStep(record, { ...context, nowTicks: at(60) })).toMatchObject([
      { code: 'VAL_BP_003', field: 'createdAt' },
    ]);
    expect(judgeStep(record, { ...context, nowTicks: at(60) + 1n })).toEqual([]);
  });

  it('fails an instance of which every branch is past its deadline', () => {
    const w = forked();
    w.take(0, { routeId: 'fork' });
    const instance = instanceOf(w) ?? expect.unreachable();
    expect(stateAt(instance, at(60))).toEqual({ state: 'Active' });
    expect(branchesAt(instance, at(60)).map(({ state }) => state)).toEqual(['Active', 'Active']);
    expect(stateAt(instance, at(61))).toEqual({ state: 'Failed', stateReason: 'TimedOut' });
    expect(branchesAt(instance, at(61)).map(({ state }) => state)).toEqual(['TimedOut', 'TimedOut']);
    expect(stateAt(undefined, at(61))).toEqual({ state: 'Pending' });
  });

  it('keeps the earlier deadline of nested fan-outs, and none behind the join', () => {
    const w = start(
      [0, [['fork', [1, 2], 'PT1M']]],
      [
        1,
        [
          ['late', [3, 4], 'PT1H'],
          ['soon', [3, 4], 'PT1S'],
          ['none', [3, 4]],
        ],
      ],
      [2, [['end', []]]],
      [3, [['on', [5]]]],
      [4, [['on', [5]]]],
      [5, [['end', []]]],
    );
    w.take(0, { routeId: 'fork' });
    for (const [routeId, until] of [
      ['late', 60],
      ['soon', 1],
      ['none', 60],
    ] as const) {
      const inner = new Walk(w.workflow);
      inner.take(0, { routeId: 'fork' });
      inner.take(1, { routeId });
      expect(inner.routing?.current.at(-1)?.until, routeId).toBe(moment(until));
    }
    const joined = start([0, [['fork', [1, 2], 'PT1M']]], [1, [['on', [2]]]], [2, [['end', []]]]);
    joined.take(0, { routeId: 'fork' });
    expect(joined.routing?.current).toEqual([
      { actionId: 1, branchKey: '0.fork.0', until: moment(60) },
      { actionId: 2 },
    ]);
  });

  it('refuses a deadline that no timestamp can write', () => {
    const w = forked();
    expect(w.refusal(0, { routeId: 'fork', createdAt: '9999-12-31T23:59:30Z' })).toEqual(['VAL_BP_003']);
    expect(w.refusal(0, { routeId: 'fork', createdAt: '0001-12-31T23:59:30Z' })).toEqual(['VAL_BP_003']);
  });
});

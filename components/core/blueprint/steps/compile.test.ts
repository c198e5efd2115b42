import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../encoding/jcs.ts';
import { parseTimestamp, TICKS_PER_SECOND } from '../../encoding/timestamp.ts';
import { branchRegions } from './branches.ts';
import { findDuration } from './duration.ts';
import { judgeStep } from './judge.ts';
import { indexSet, membersOf, reachable } from './reachability.ts';
import { encodeRouting, findRouting, MAX_ROUTING_LENGTH, parseRouting, type Routing } from './routing.ts';
import { addressOf, compiled, INSTANCE, moment, PIN, Walk } from './testing/walks.ts';
import { compileWorkflow } from './workflow.ts';
import { concurrentActions, openParticipants, worstRoutingLength } from './worst-routing.ts';

const permit = JSON.parse(readFileSync(new URL('../vectors/site-permit.json', import.meta.url), 'utf8'));

/** A copy of the site permit with one member at a path replaced. */
function changed(path: readonly (string | number)[], value: unknown) {
  const copy = JSON.parse(JSON.stringify(permit));
  let container = copy;
  for (const name of path.slice(0, -1)) container = container[name];
  container[path.at(-1) ?? ''] = value;
  return copy;
}

describe('compileWorkflow', () => {
  it('reads the site permit', () => {
    const workflow = compiled(permit);
    expect([...workflow.actions.keys()]).toEqual([0, 1, 2, 3]);
    expect(openParticipants(workflow)).toEqual(['applicant']);
    expect(workflow.actions.get(2)?.routes.get('refused')?.reasons).toEqual(
      new Set(['R-INCOMPLETE', 'R-UNSAFE']),
    );
    expect(workflow.actions.get(3)?.rejection).toEqual({});
  });

  it.each([
    [['id'], 7],
    [['participants'], {}],
    [['participants', 0], 'applicant'],
    [['participants', 1, 'id'], 'applicant'],
    [['participants', 1, 'walletAddress'], 'w1short'],
    [['actions'], 'none'],
    [['actions', 1, 'id'], 0],
    [['actions', 1, 'id'], '1'],
    [['actions', 1, 'id'], 1.5],
    [['actions', 1, 'sender'], 'nobody'],
    [['actions', 0, 'isStartingAction'], 'yes'],
    [['actions', 2, 'requiredPriorActions'], ['0']],
    [['actions', 2, 'routes'], {}],
    [['actions', 2, 'routes', 1, 'id'], 'approved'],
    [['actions', 2, 'routes', 1, 'id'], '\ud800'],
    [['actions', 2, 'routes', 1, 'nextActionIds'], [9]],
    [
      ['actions', 2, 'routes', 1, 'nextActionIds'],
      [1, 1],
    ],
    [
      ['actions', 2, 'routes', 1, 'nextActionIds'],
      [0, 1, 2, 3, 4, 5, 6, 7, 8],
    ],
    [['actions', 2, 'routes', 1, 'branchDeadline'], 'P1Y'],
    [['actions', 2, 'routes', 1, 'x-decision-notice'], []],
    [['actions', 2, 'routes', 1, 'x-decision-notice', 'reasons'], []],
    [['actions', 2, 'rejectionConfig'], true],
    [['actions', 2, 'rejectionConfig', 'targetActionId'], 9],
    [['actions', 2, 'rejectionConfig', 'isTerminal'], 1],
  ] as const)('does not compile with %j = %j', (path, value) => {
    expect(compileWorkflow(changed(path, value))).toBeUndefined();
  });

  it('takes null for an absent member, and leaves others unread', () => {
    expect(compileWorkflow(changed(['actions', 0, 'requiredPriorActions'], null))).toBeDefined();
    expect(compileWorkflow(changed(['participants', 1, 'walletAddress'], null))).toBeDefined();
    expect(compileWorkflow(changed(['actions', 0, 'dataSchemas'], 7))).toBeDefined();
    expect(compileWorkflow(changed(['actions', 2, 'requiredPriorActions'], [77]))).toBeDefined();
  });

  it('keeps members by inherited names apart', () => {
    expect(compileWorkflow(JSON.parse('{"id":"x","__proto__":{"participants":[]}}'))?.participants.size).toBe(
      0,
    );
    expect(compileWorkflow(changed(['actions', 0, 'sender'], 'constructor'))).toBeUndefined();
  });
});

// The limit is for a hang, not for speed: the machine is shared.
describe('hostile definitions', { timeout: 60_000 }, () => {
  const ids = Array.from({ length: 200 }, (_, index) => index);
  const routesOf = (id: number) =>
    Array.from({ length: 44 }, (_, at) => ({
      id: `${at}`,
      nextActionIds: Array.from({ length: 8 }, (_, n) => (id + at * 7 + n * n + 1) % 200).filter(
        (next, n, all) => all.indexOf(next) === n,
      ),
      branchDeadline: 'P1D',
    }));
  const dense = {
    id: 'dense',
    participants: ids.slice(0, 32).map((id) => ({ id: `p${id}` })),
    actions: ids.map((id) => ({
      id,
      sender: `p${id % 32}`,
      isStartingAction: true,
      requiredPriorActions: ids,
      routes: routesOf(id),
      rejectionConfig: { targetActionId: (id * 31) % 200 },
    })),
  };

  it('compiles 512 KiB of routes among 200 actions, bounds them and judges their steps', () => {
    expect(JSON.stringify(dense).length).toBeGreaterThan(500_000);
    const workflow = compiled(dense);
    expect(worstRoutingLength(workflow)).toBeGreaterThan(MAX_ROUTING_LENGTH);
    const free = {
      ...dense,
      actions: dense.actions.map((each) => ({
        ...each,
        requiredPriorActions: [],
        isStartingAction: each.id === 0,
      })),
    };
    const walk = new Walk(compiled(free));
    for (let step = 0; step < 4; step += 1)
      walk.take(walk.routing?.current.at(-1)?.actionId ?? 0, { routeId: '0' });
    expect(walk.steps.length).toBeGreaterThan(2);
    for (const { record, context } of walk.steps) expect(judgeStep(record, context)).toEqual([]);
  });

  it('computes regions of a chain of nested fan-outs', () => {
    const nested = {
      id: 'nested',
      participants: [{ id: 'p' }],
      actions: ids.map((id) => ({
        id,
        sender: 'p',
        isStartingAction: id === 0,
        routes: id < 198 ? [{ id: 'r', nextActionIds: [id + 1, id + 2] }] : [],
      })),
    };
    const workflow = compiled(nested);
    const action = workflow.actions.get(0) ?? expect.unreachable();
    const route = action.routes.get('r') ?? expect.unreachable();
    // Everything but the first target is reachable from both.
    expect(branchRegions(workflow, { action, route }).map((region) => [...membersOf(region)])).toEqual([
      [1],
      [],
    ]);
    expect(worstRoutingLength(workflow)).toBeGreaterThan(0);
  });

  it('refuses more than 200 actions and 32 participants', () => {
    expect(
      compileWorkflow({ ...dense, actions: [...dense.actions, { id: 200, sender: 'p0' }] }),
    ).toBeUndefined();
    expect(
      compileWorkflow({ ...dense, participants: [...dense.participants, { id: 'more' }] }),
    ).toBeUndefined();
  });

  it('judges the longest keys of branches that a predecessor can hold', () => {
    const free = dense.actions.map((each) => ({ ...each, requiredPriorActions: [] }));
    const workflow = compiled({ ...dense, actions: free });
    const branchKey = Array.from({ length: 600 }, (_, at) => `${at % 200}.0.0`)
      .join('/')
      .slice(0, 3_600)
      .replace(/\/[^/]*$/, '');
    const before: Routing = {
      v: 1,
      instanceId: INSTANCE,
      blueprintDefinitionTxId: PIN,
      seq: 3,
      completedActionId: 9,
      nextActions: [],
      current: [{ actionId: 5, branchKey, until: moment(1e6) }],
      roles: {},
    };
    const record = {
      type: 'Action',
      blueprintId: 'dense',
      actionId: '5',
      previousTransactionId: 'ee'.repeat(32),
      senderAddress: addressOf('l'),
      createdAt: moment(0),
      metadata: {
        instanceId: INSTANCE,
        routing: encodeRouting({ ...before, seq: 4, completedActionId: 5, routeId: '1' }),
      },
    };
    const predecessor = { txId: 'ee'.repeat(32), type: 'Action', routing: encodeRouting(before) };
    const context = { workflow, isPinKnown: true, predecessor, nowTicks: parseTimestamp(moment(0)) };
    expect(judgeStep(record, context)).toMatchObject([{ code: 'VAL_BP_003' }]);
  });
});

describe('the worst length', () => {
  it('is that of one current action without fan-outs', () => {
    expect(worstRoutingLength(compiled(permit))).toBeLessThan(600);
    expect(concurrentActions(compiled(permit)).every((set) => [...membersOf(set)].length === 0)).toBe(true);
  });

  it('counts branches, not actions, and nothing twice behind a join that waits', () => {
    const branch = (first: number, then: number) =>
      Array.from({ length: 20 }, (_, at) => ({
        id: first + at,
        sender: 'p',
        routes: [{ id: 'on', nextActionIds: [at === 19 ? then : first + at + 1] }],
      }));
    const long = {
      id: 'long',
      participants: [{ id: 'p' }],
      actions: [
        {
          id: 0,
          sender: 'p',
          isStartingAction: true,
          routes: [{ id: 'fork', nextActionIds: [100, 200, 300] }],
        },
        ...branch(100, 900),
        ...branch(200, 900),
        ...branch(300, 900),
        {
          id: 900,
          sender: 'p',
          requiredPriorActions: [119, 219, 319],
          routes: [{ id: 'on', nextActionIds: [901] }],
        },
        { id: 901, sender: 'p', routes: [] },
      ],
    };
    const workflow = compiled(long);
    const walk = new Walk(workflow);
    walk.take(0, { routeId: 'fork' });
    const worst = worstRoutingLength(workflow);
    expect(worst).toBeGreaterThanOrEqual(encodeRouting(walk.routing ?? expect.unreachable()).length);
    expect(worst).toBeLessThan(1_000);
    const last = workflow.actions.get(901)?.index ?? -1;
    expect([...membersOf(concurrentActions(workflow)[last] ?? indexSet(1, []))]).toEqual([]);
  });
});

describe('routing', () => {
  const walk = new Walk(compiled(permit));
  walk.take(0, { routeId: 'plain' });
  const routing = walk.routing ?? expect.unreachable();
  const text = encodeRouting(routing);

  it('has one text', () => {
    expect(parseRouting(text)).toEqual(routing);
    expect(findRouting({ routing: text })).toEqual(routing);
    expect(findRouting(undefined)).toBeUndefined();
    expect(findRouting({ other: text })).toBeUndefined();
    for (const other of [
      JSON.stringify({ zz: 1, ...routing }),
      ` ${text}`,
      text.replace('"seq":0', '"seq":-0'),
      text.replace('"seq":0', '"seq":0,"seq":0'),
      text.replace('"seq":0', '"seq":0.0'),
      '',
      '[]',
      'null',
    ]) {
      expect(findRouting({ routing: other }), other).toBe('malformed');
    }
  });

  it.each([
    { v: 2 },
    { instanceId: INSTANCE.toUpperCase() },
    { blueprintDefinitionTxId: PIN.slice(1) },
    { seq: -1 },
    { seq: 1.5 },
    { completedActionId: '0' },
    { isRejection: false },
    { ended: 'Failed' },
    { current: [{ actionId: 2 }, { actionId: 1 }] },
    { current: [{ actionId: 1 }, { actionId: 1 }] },
    { current: [{ actionId: 1, until: '2026-11-22T10:00:00Z' }] },
    { current: [{ actionId: 1, until: '9999-12-31T23:59:59.9999990-01:00' }] },
    { current: [{ actionId: 1, branchKey: '' }] },
    { roles: { applicant: 'w1' } },
    { roles: [] },
    { nextActions: [{ actionId: 2, until: moment(0) }] },
  ])('refuses %j', (other) => {
    expect(parseRouting(canonicalJson({ ...routing, ...other }))).toBeUndefined();
  });

  it('is refused above its maximum length', () => {
    const routeId = 'x'.repeat(MAX_ROUTING_LENGTH - text.length + 'plain'.length);
    expect(encodeRouting({ ...routing, routeId })).toHaveLength(MAX_ROUTING_LENGTH);
    expect(() => encodeRouting({ ...routing, routeId: `${routeId}x` })).toThrow(
      expect.objectContaining({ kind: 'unprocessable', code: 'ROUTING_TOO_LARGE' }),
    );
    expect(parseRouting(canonicalJson({ ...routing, routeId: `${routeId}x` }))).toBeUndefined();
  });
});

describe('durations', () => {
  it('are whole weeks, days, hours, minutes and seconds', () => {
    const seconds = (text: string) => {
      const ticks = findDuration(text);
      return ticks === undefined ? undefined : Number(ticks / TICKS_PER_SECOND);
    };
    expect(['P1W', 'P2D', 'PT3H', 'PT4M', 'PT5S', 'P1W2DT3H4M5S', 'PT0S'].map(seconds)).toEqual([
      604_800, 172_800, 10_800, 240, 5, 788_645, 0,
    ]);
    for (const text of [
      '',
      'P',
      'PT',
      'P1DT',
      'P1Y',
      'P1M',
      'PT1.5S',
      '-P1D',
      'P1D ',
      'p1d',
      'P1H',
      'P1D1W',
      'P1234567D',
    ]) {
      expect(seconds(text), text).toBeUndefined();
    }
  });
});

describe('reachability', () => {
  it('equals a search by sets', () => {
    const arbGraph = fc
      .integer({ min: 1, max: 70 })
      .chain((size) =>
        fc.array(fc.uniqueArray(fc.nat(size - 1), { maxLength: 4 }), { minLength: size, maxLength: size }),
      );
    fc.assert(
      fc.property(arbGraph, fc.nat(), fc.nat(), (graph, from, avoid) => {
        const [start, avoided] = [from % graph.length, avoid % graph.length];
        const expected = new Set([start]);
        expected.delete(avoided);
        for (const at of expected)
          for (const next of graph[at] ?? []) if (next !== avoided) expected.add(next);
        const sets = graph.map((next) => indexSet(graph.length, next));
        expect([...membersOf(reachable(sets, [start], avoided))]).toEqual(
          [...expected].sort((one, other) => one - other),
        );
      }),
    );
  });
});

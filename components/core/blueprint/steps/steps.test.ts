import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseTimestamp } from '../../encoding/timestamp.ts';
import { foldInstance, stateAt } from './instance.ts';
import { judgeStep } from './judge.ts';
import { addressOf, compiled, moment, Walk } from './testing/walks.ts';

const permit = JSON.parse(readFileSync(new URL('../vectors/site-permit.json', import.meta.url), 'utf8'));

function instanceOf(walk: Walk) {
  return foldInstance(walk.steps.map(({ sealed }) => sealed));
}

const at = (seconds: number) => parseTimestamp(moment(seconds));

describe('the site permit', () => {
  const walk = () => new Walk(compiled(permit));

  it('runs the risky path to its end', () => {
    const w = walk();
    expect(w.take(0, { routeId: 'risky' })).toBe(true);
    expect(w.routing).toMatchObject({
      seq: 0,
      nextActions: [{ actionId: 1 }],
      roles: { applicant: w.senderOf(0) },
    });
    expect(w.take(1, { routeId: 'reviewed' })).toBe(true);
    expect(w.take(2, { routeId: 'approved' })).toBe(true);
    expect(w.take(3, { routeId: 'done' })).toBe(true);
    expect(w.routing).toMatchObject({ seq: 3, current: [], ended: 'Completed', nextActions: [] });
    expect(stateAt(instanceOf(w), at(9))).toEqual({ state: 'Completed' });
    expect(w.steps.flatMap(({ record, context }) => judgeStep(record, context))).toEqual([]);
  });

  it('runs the plain path without the board', () => {
    const w = walk();
    w.take(0, { routeId: 'plain' });
    expect(w.current).toEqual(['2']);
    expect(w.refusal(1, { routeId: 'reviewed' })).toEqual(['VAL_BP_003']);
    w.take(2, { routeId: 'refused', reasonCode: 'R-UNSAFE' });
    expect(w.routing).toMatchObject({ ended: 'Completed', reasonCode: 'R-UNSAFE' });
  });

  it('goes back by rejections, keeps its roles, and goes on', () => {
    const w = walk();
    w.take(0, { routeId: 'risky' });
    expect(w.take(1, { isRejection: true })).toBe(true);
    expect(w.routing).toMatchObject({
      isRejection: true,
      current: [{ actionId: 0 }],
      nextActions: [{ actionId: 0 }],
    });
    expect(w.routing).not.toHaveProperty('routeId');
    expect(w.refusal(0, { routeId: 'risky', sender: addressOf('l') })).toEqual(['VAL_BP_002']);
    expect(w.take(0, { routeId: 'plain' })).toBe(true);
    expect(instanceOf(w)).toMatchObject({
      completedActionCount: 2,
      rejectionCount: 1,
      routeId: 'plain',
      seq: 2,
    });
  });

  it('ends as failed with a terminal rejection', () => {
    const w = walk();
    w.take(0, { routeId: 'plain' });
    w.take(2, { routeId: 'approved' });
    expect(w.take(3, { isRejection: true })).toBe(true);
    expect(w.routing).toMatchObject({ current: [], ended: 'Rejected', nextActions: [] });
    expect(stateAt(instanceOf(w), at(9))).toEqual({ state: 'Failed', stateReason: 'Rejected' });
    expect(w.refusal(3, { routeId: 'done' })).toEqual(['VAL_BP_003']);
  });

  it('refuses what the definition does not have', () => {
    const w = walk();
    expect(w.refusal(1, { routeId: 'reviewed' })).toEqual(['VAL_BP_001']);
    expect(w.refusal(77, { routeId: 'x' })).toEqual(['VAL_BP_001']);
    expect(w.refusal(0)).toEqual(['VAL_BP_003']);
    expect(w.refusal(0, { routeId: '__proto__' })).toEqual(['VAL_BP_003']);
    expect(w.refusal(0, { routeId: 'plain', reasonCode: 'R-UNSAFE' })).toEqual(['VAL_BP_003']);
    expect(w.refusal(0, { isRejection: true })).toEqual(['VAL_BP_003']);
    expect(w.refusal(0, { routeId: 'plain', createdAt: 'yesterday' })).toEqual(['VAL_BP_003']);
    w.take(0, { routeId: 'plain' });
    expect(w.refusal(2, { routeId: 'approved', sender: addressOf('l') })).toEqual(['VAL_BP_002']);
    expect(w.refusal(2, { routeId: 'refused', reasonCode: 'R-OTHER' })).toEqual(['VAL_BP_003']);
    expect(w.refusal(2, { routeId: 'approved', isRejection: true })).toEqual(['VAL_BP_003']);
    expect(w.refusal(2, { routeId: 'approved', pin: 'cd'.repeat(32) })).toEqual(['VAL_BP_VERSION_001']);
    expect(w.refusal(2, { routeId: 'approved', boundRoles: {} })).toEqual(['VAL_BP_003']);
    expect(w.refusal(2, { routeId: 'approved' })).toEqual([]);
  });
});

describe('roles', () => {
  const roles = {
    id: 'r',
    participants: [
      { id: 'p' },
      { id: 'q' },
      { id: '__proto__' },
      { id: 'closed', walletAddress: addressOf('v') },
    ],
    actions: [
      { id: 0, sender: 'p', isStartingAction: true, routes: [{ id: 'on', nextActionIds: [1] }] },
      { id: 1, sender: 'q', routes: [{ id: 'on', nextActionIds: [2] }] },
      { id: 2, sender: '__proto__' },
    ],
  };

  it('binds open participants at the start or by their first step', () => {
    const w = new Walk(compiled(roles));
    const bound = JSON.parse(`{"__proto__":"${addressOf('z')}"}`);
    expect(w.take(0, { routeId: 'on', boundRoles: bound })).toBe(true);
    expect(w.take(1, { routeId: 'on', sender: addressOf('l') })).toBe(true);
    expect(Object.entries(w.routing?.roles ?? {})).toEqual([
      ['__proto__', addressOf('z')],
      ['p', w.senderOf(0)],
      ['q', addressOf('l')],
    ]);
    expect(w.refusal(2, { sender: addressOf('l') })).toEqual(['VAL_BP_002']);
    expect(w.take(2, { sender: addressOf('z') })).toBe(true);
    expect(w.steps.flatMap(({ record, context }) => judgeStep(record, context))).toEqual([]);
  });

  it('binds nobody who is closed, unknown, or the starter', () => {
    const w = new Walk(compiled(roles));
    for (const [participant, address] of [
      ['closed', addressOf('l')],
      ['nobody', addressOf('l')],
      ['p', addressOf('l')],
      ['q', 'w1'],
    ] as const) {
      expect(w.refusal(0, { routeId: 'on', boundRoles: { [participant]: address } })).toEqual(['VAL_BP_003']);
    }
  });
});

import { describe, expect, test } from 'vitest';
import {
  CONDITIONS,
  findCondition,
  outcomeUpdates,
  setCondition,
  setConditions,
  stampTime,
} from './conditions.ts';
import type { Condition } from './object.ts';
import { REASONS } from './reasons.ts';

const early = { generation: 1, now: '2026-01-01T00:00:00Z' };
const late = { generation: 2, now: '2026-01-01T00:01:00Z' };
const waiting = {
  type: 'Ready',
  status: 'False',
  reason: 'WaitingForPods',
  message: '1 of 4 pods is ready',
} as const;

describe('a condition', () => {
  test('keeps its transition time while the status stays, and takes the new generation, reason and message', () => {
    const first = setCondition([], waiting, early);
    const second = setCondition(
      first,
      { ...waiting, reason: 'QuorumLost', message: 'two pods are gone' },
      late,
    );
    expect(second).toEqual([
      {
        ...waiting,
        reason: 'QuorumLost',
        message: 'two pods are gone',
        observedGeneration: 2,
        lastTransitionTime: early.now,
      },
    ]);
  });

  test('takes a new transition time when the status flips', () => {
    const first = setCondition([], waiting, early);
    const flipped = setCondition(first, { ...waiting, status: 'True', reason: 'Reconciled' }, late);
    expect(flipped[0]).toMatchObject({ status: 'True', lastTransitionTime: late.now });
    expect(first[0]?.lastTransitionTime).toBe(early.now);
  });

  test('that is shown only while true is left out when it is not true', () => {
    const held = setCondition([], { ...waiting, type: 'Stalled', status: 'True' }, early);
    expect(held).toHaveLength(1);
    expect(setCondition(held, { ...waiting, type: 'Stalled', status: 'False' }, late)).toEqual([]);
    expect(setCondition(held, { ...waiting, type: 'Stalled', status: 'Unknown' }, late)).toEqual([]);
  });

  test('of another program is kept, and the list has the order of the catalogue', () => {
    const foreign: Condition = { ...waiting, type: 'Zebra', lastTransitionTime: early.now };
    const found = setConditions(
      [foreign],
      [
        { ...waiting, type: 'QuorumHealthy' },
        { ...waiting, type: 'Degraded' },
        { ...waiting, type: 'Ready' },
      ],
      early,
    );
    expect(found.map((each) => each.type)).toEqual(['Ready', 'Degraded', 'QuorumHealthy', 'Zebra']);
    expect(findCondition(found, 'Degraded')?.reason).toBe('WaitingForPods');
    expect(findCondition(undefined, 'Ready')).toBeUndefined();
  });

  test('has its message cut to the length that the schema accepts', () => {
    const [found] = setCondition([], { ...waiting, message: 'x'.repeat(10_000) }, early);
    expect(found?.message).toHaveLength(4096);
    expect(found?.message.endsWith('...')).toBe(true);
  });
});

describe('an outcome', () => {
  test('never shows Reconciling and Stalled together, and neither when the object is ready', () => {
    const types = (state: 'ready' | 'reconciling' | 'stalled') =>
      setConditions([], outcomeUpdates({ state, reason: 'Progressing', message: '' }), early)
        .filter((each) => each.status === 'True')
        .map((each) => each.type);
    expect(types('ready')).toEqual(['Ready']);
    expect(types('reconciling')).toEqual(['Reconciling']);
    expect(types('stalled')).toEqual(['Stalled']);
  });

  test('replaces the previous one', () => {
    const stalled = setConditions(
      [],
      outcomeUpdates({ state: 'stalled', reason: 'PolicyRejected', message: 'no' }),
      early,
    );
    const ready = setConditions(
      stalled,
      outcomeUpdates({ state: 'ready', reason: 'Reconciled', message: '' }),
      late,
    );
    expect(ready.map((each) => [each.type, each.status])).toEqual([['Ready', 'True']]);
  });
});

test('times are written in whole seconds', () => {
  expect(stampTime(Date.UTC(2026, 0, 1, 0, 0, 0, 999))).toBe(early.now);
});

test('every condition and reason has a meaning, and every reason a remedy', () => {
  expect(Object.keys(REASONS)).toHaveLength(20);
  for (const [name, { meaning, remedy }] of Object.entries(REASONS)) {
    expect(name).toMatch(/^[A-Z][A-Za-z]+$/);
    expect(meaning.endsWith('.') && remedy.endsWith('.'), name).toBe(true);
  }
  for (const [name, { meaning, kinds, shown, positive }] of Object.entries(CONDITIONS)) {
    expect(meaning.endsWith('.'), name).toBe(true);
    expect(kinds.length, name).toBeGreaterThan(0);
    expect(shown === 'while-true' && positive, `${name} would be absent while it is in its good state`).toBe(
      false,
    );
  }
});

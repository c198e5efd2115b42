import { describe, expect, test } from 'vitest';
import { type Change, Trust } from './fault-model.ts';

interface Given {
  readonly current: readonly string[];
  readonly known?: readonly (readonly [number, readonly string[]])[];
  readonly underWay?: readonly Change[];
}

function create(registers: Record<string, Given>): Trust {
  const trust = new Trust();
  for (const [id, { current, known = [], underWay = [] }] of Object.entries(registers)) {
    trust.watch(id, { current: () => current, known: () => known, underWay: () => underWay });
  }
  return trust;
}

const four = ['a', 'b', 'c', 'd'];
const add = (validatorId: string): Change => ({ kind: 'add', validatorId });
const remove = (validatorId: string): Change => ({ kind: 'remove', validatorId });

describe('the fault bound', () => {
  test('is one member of four, and none of three', () => {
    const trust = create({ r: { current: four, known: [[0, four]] } });
    expect(trust.bears('a')).toBe(true);
    trust.distrust('a', true);
    expect(trust.bears('b')).toBe(false);
    expect(create({ r: { current: ['a', 'b', 'c'] } }).bears('a')).toBe(false);
  });

  test('applies to the sets of every register and of every height so far', () => {
    expect(create({ r: { current: four }, s: { current: ['a', 'b'] } }).bears('a')).toBe(false);
    expect(create({ r: { current: four }, s: { current: ['a', 'b'] } }).bears('c')).toBe(true);
    expect(create({ r: { current: four, known: [[3, ['a', 'b', 'c']]] } }).bears('a')).toBe(false);
  });

  test('assumes the worst outcome of pending changes', () => {
    expect(create({ r: { current: four, underWay: [remove('d')] } }).bears('a')).toBe(false);
    expect(create({ r: { current: four, underWay: [add('e')] } }).bears('a')).toBe(true);
    const trust = create({ r: { current: four, underWay: [add('e')] } });
    trust.distrust('a', true);
    expect(trust.bearsChange('r', remove('b'))).toBe(false);
    expect(trust.bearsChange('r', remove('a'))).toBe(true);
    expect(trust.bearsChange('r', add('f'))).toBe(true);
    const outside = create({ r: { current: four } });
    outside.distrust('e', true);
    expect(outside.bearsChange('r', add('e'))).toBe(true);
    outside.distrust('a', true);
    expect(outside.bearsChange('r', add('e'))).toBe(false);
  });

  test('limits lost state to a range of heights, where the sets of those heights tolerate it', () => {
    const known = [
      [1, four],
      [2, ['a', 'b', 'c']],
    ] as const;
    const trust = create({ r: { current: ['b', 'c', 'd'], known } });
    const at = (from: number, to: number) => new Map([['r', { from, to }]]);
    expect(trust.bearsAt('a', at(1, 2))).toBe(false);
    expect(trust.bearsAt('a', at(1, 1))).toBe(true);
    trust.distrustAt('a', at(1, 1));
    expect([0, 1, 2].map((height) => trust.liesAt('a', 'r', height))).toEqual([false, true, false]);
    expect(trust.isFaulty('a')).toBe(false);
  });

  test('treats a validator as outside when it is in no set and joins none', () => {
    const trust = create({ r: { current: four, underWay: [add('e'), remove('d')] } });
    expect(['a', 'd', 'e', 'f'].map((id) => trust.isOutside(id))).toEqual([false, false, false, true]);
  });
});

import { describe, expect, test } from 'vitest';
import { type Change, FaultModel } from './fault-model.ts';

interface Given {
  readonly current: readonly string[];
  readonly known?: readonly (readonly [number, readonly string[]])[];
  readonly pending?: readonly Change[];
}

function create(registers: Record<string, Given>): FaultModel {
  const faultModel = new FaultModel();
  for (const [id, { current, known = [], pending = [] }] of Object.entries(registers)) {
    faultModel.watch(id, { current: () => current, known: () => known, pending: () => pending });
  }
  return faultModel;
}

const four = ['a', 'b', 'c', 'd'];
const add = (validatorId: string): Change => ({ kind: 'add', validatorId });
const remove = (validatorId: string): Change => ({ kind: 'remove', validatorId });

describe('the fault bound', () => {
  test('is one member of four, and none of three', () => {
    const faultModel = create({ r: { current: four, known: [[0, four]] } });
    expect(faultModel.tolerates('a')).toBe(true);
    faultModel.markFaulty('a', true);
    expect(faultModel.tolerates('b')).toBe(false);
    expect(create({ r: { current: ['a', 'b', 'c'] } }).tolerates('a')).toBe(false);
  });

  test('applies to the sets of every register and of every height so far', () => {
    expect(create({ r: { current: four }, s: { current: ['a', 'b'] } }).tolerates('a')).toBe(false);
    expect(create({ r: { current: four }, s: { current: ['a', 'b'] } }).tolerates('c')).toBe(true);
    expect(create({ r: { current: four, known: [[3, ['a', 'b', 'c']]] } }).tolerates('a')).toBe(false);
  });

  test('assumes the worst outcome of pending changes', () => {
    expect(create({ r: { current: four, pending: [remove('d')] } }).tolerates('a')).toBe(false);
    expect(create({ r: { current: four, pending: [add('e')] } }).tolerates('a')).toBe(true);
    const faultModel = create({ r: { current: four, pending: [add('e')] } });
    faultModel.markFaulty('a', true);
    expect(faultModel.toleratesChange('r', remove('b'))).toBe(false);
    expect(faultModel.toleratesChange('r', remove('a'))).toBe(true);
    expect(faultModel.toleratesChange('r', add('f'))).toBe(true);
    const outside = create({ r: { current: four } });
    outside.markFaulty('e', true);
    expect(outside.toleratesChange('r', add('e'))).toBe(true);
    outside.markFaulty('a', true);
    expect(outside.toleratesChange('r', add('e'))).toBe(false);
  });

  test('limits lost state to a range of heights, where the sets of those heights tolerate it', () => {
    const known = [
      [1, four],
      [2, ['a', 'b', 'c']],
    ] as const;
    const faultModel = create({ r: { current: ['b', 'c', 'd'], known } });
    const at = (from: number, to: number) => new Map([['r', { from, to }]]);
    expect(faultModel.toleratesAt('a', at(1, 2))).toBe(false);
    expect(faultModel.toleratesAt('a', at(1, 1))).toBe(true);
    faultModel.markFaultyAt('a', at(1, 1));
    expect([0, 1, 2].map((height) => faultModel.isFaultyAt('a', 'r', height))).toEqual([false, true, false]);
    expect(faultModel.isFaulty('a')).toBe(false);
  });

  test('treats a validator as outside when it is in no set and joins none', () => {
    const faultModel = create({ r: { current: four, pending: [add('e'), remove('d')] } });
    expect(['a', 'd', 'e', 'f'].map((id) => faultModel.isOutside(id))).toEqual([false, false, false, true]);
  });
});

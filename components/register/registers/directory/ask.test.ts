import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import type { ValidatorAddress } from '../../clients/validators.ts';
import { fakeValidators } from '../../testing/fake-validators.ts';
import { askAll, askOne } from './ask.ts';
import { createOutages } from './outages.ts';

const members = ['a', 'b', 'c', 'd'].map((validatorId) => ({ validatorId, endpoint: 'host:1' }));
const away = () => Promise.reject(new AppError('unavailable', 'UNAVAILABLE', 'away'));
const silent = () => new Promise<string>(() => undefined);

/** Members with the given behaviours; the others answer with their id. */
function asking(behaviours: Readonly<Record<string, () => Promise<string>>>) {
  const asked: string[] = [];
  const ask = async ({ validatorId }: ValidatorAddress): Promise<string> => {
    asked.push(validatorId);
    return behaviours[validatorId]?.() ?? validatorId;
  };
  return { ask, asked };
}

describe('calling one member', () => {
  it('calls the next member when one is unreachable, and stops at the first answer', async () => {
    const { ask, asked } = asking({ a: away });
    expect(await askOne(members, ask)).toBe('b');
    expect(asked).toEqual(['a', 'b']);
  });

  it('calls the next member when one fails itself', async () => {
    const fail = () => Promise.reject(new AppError('internal', 'INTERNAL_ERROR', 'not implemented'));
    const { ask, asked } = asking({ a: fail });
    expect(await askOne(members, ask)).toBe('b');
    expect(asked).toEqual(['a', 'b']);
  });

  it('skips a member that has never announced itself', async () => {
    const { ask, asked } = asking({});
    expect(await askOne([{ validatorId: 'x', endpoint: '' }, ...members], ask)).toBe('a');
    expect(asked).toEqual(['a']);
  });

  it('looks for a final answer, and returns the first one when there is none', async () => {
    const { ask } = asking({ a: async () => 'busy', b: async () => 'busy too' });
    const final = (answer: string) => !answer.startsWith('busy');
    expect(await askOne(members, ask, final)).toBe('c');
    expect(await askOne(members.slice(0, 2), ask, final)).toBe('busy');
  });

  it('does not call others after a refusal', async () => {
    const refuse = () => Promise.reject(new AppError('conflict', 'TX_CONFLICT', 'another record'));
    const { ask, asked } = asking({ a: refuse });
    await expect(askOne(members, ask)).rejects.toMatchObject({ code: 'TX_CONFLICT' });
    expect(asked).toEqual(['a']);
  });

  it('is unavailable when no member answers, or there is none', async () => {
    const { ask } = asking({ a: away, b: away, c: away, d: away });
    await expect(askOne(members, ask)).rejects.toMatchObject({ code: 'VALIDATOR_UNAVAILABLE' });
    await expect(askOne([], ask)).rejects.toMatchObject({ code: 'VALIDATOR_UNAVAILABLE' });
  });
});

describe('calling all members', () => {
  it('returns every answer with its member', async () => {
    const { ask } = asking({ b: away });
    expect(await askAll(members, ask)).toEqual({
      answers: ['a', 'c', 'd'],
      reached: [members[0], members[2], members[3]],
      majority: true,
    });
  });

  it('reports when the answers are not a majority', async () => {
    const { ask } = asking({ b: away, c: away });
    expect((await askAll(members, ask)).majority).toBe(false);
  });

  it('does not wait for a hanging member once a majority has answered', async () => {
    const { ask } = asking({ c: silent });
    expect((await askAll(members, ask)).answers).toEqual(['a', 'b', 'd']);
  });

  it('waits for as many as are needed', async () => {
    const late = Promise.withResolvers<string>();
    const { ask } = asking({ d: () => late.promise });
    const asked = askAll(members, ask, { need: 4 });
    setTimeout(() => late.resolve('late'), 300);
    expect((await asked).answers).toEqual(['a', 'b', 'c', 'late']);
  });

  it('stops at an answer that suffices', async () => {
    const { ask } = asking({ a: silent, b: silent, c: silent });
    expect((await askAll(members, ask, { enough: (answer) => answer === 'd' })).answers).toEqual(['d']);
  });

  it('is unavailable when no member answers', async () => {
    const { ask } = asking({ a: away, b: away, c: away, d: away });
    await expect(askAll(members, ask)).rejects.toMatchObject({ code: 'VALIDATOR_UNAVAILABLE' });
    await expect(askAll([], ask)).rejects.toMatchObject({ code: 'VALIDATOR_UNAVAILABLE' });
  });
});

describe('a member that did not answer recently', () => {
  it('is called last for ten seconds, or until it answers', async () => {
    const clock = manualClock(0);
    const outages = createOutages(clock);
    const validators = fakeValidators([]);
    validators.away.add('a');
    const watched = outages.watch(validators);
    const [a] = members;
    if (a === undefined) throw new Error('no member');
    const first = () => outages.order(members)[0]?.validatorId;
    await expect(watched.listPending(a, 'r', 1)).rejects.toThrow();
    expect(outages.order(members).map(({ validatorId }) => validatorId)).toEqual(['b', 'c', 'd', 'a']);
    clock.advance(10_000);
    expect(first()).toBe('a');
    await expect(watched.listPending(a, 'r', 1)).rejects.toThrow();
    validators.away.clear();
    await watched.listPending(a, 'r', 1);
    expect(first()).toBe('a');
  });
});

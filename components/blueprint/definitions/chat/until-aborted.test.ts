import { expect, it } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { untilAborted } from './until-aborted.ts';

async function collect(
  source: AsyncIterable<number>,
  signal: AbortSignal,
  abort?: { at: number; act: () => void },
) {
  const runtime = testRuntime('chat');
  const taken: number[] = [];
  for await (const value of untilAborted(source, signal, runtime.log)) {
    taken.push(value);
    if (value === abort?.at) abort.act();
  }
  return { taken, runtime };
}

/** Gives 1, 2, 3, and then what `then` does. */
function counting(then: () => Promise<number> | undefined) {
  const state = { isClosed: false };
  async function* source(): AsyncGenerator<number> {
    try {
      yield* [1, 2, 3];
      const last = then();
      if (last !== undefined) yield await last;
    } finally {
      state.isClosed = true;
    }
  }
  return { state, source: source() };
}

it('gives every value of a source that ends', async () => {
  const { source, state } = counting(() => Promise.resolve(4));
  const { taken } = await collect(source, new AbortController().signal);
  expect([taken, state.isClosed]).toEqual([[1, 2, 3, 4], true]);
});

it('passes what a source throws', async () => {
  const { source } = counting(() => Promise.reject(new Error('broken')));
  await expect(collect(source, new AbortController().signal)).rejects.toThrow('broken');
});

it('gives nothing when the signal has aborted, and closes the source', async () => {
  const closed = { count: 0 };
  const source = {
    [Symbol.asyncIterator]: () => ({
      next: async () => ({ done: false as const, value: 1 }),
      return: async () => {
        closed.count += 1;
        return { done: true as const, value: undefined };
      },
    }),
  };
  expect((await collect(source, AbortSignal.abort())).taken).toEqual([]);
  expect(closed.count).toBe(1);
});

it('does not wait for a source that hangs when the signal aborts', async () => {
  const controller = new AbortController();
  const { source } = counting(() => new Promise(() => undefined));
  setTimeout(() => controller.abort(), 20);
  expect((await collect(source, controller.signal)).taken).toEqual([1, 2, 3]);
});

it('closes a source whose values are not wanted any more, and logs what it throws then', async () => {
  const controller = new AbortController();
  const source = {
    [Symbol.asyncIterator]: () => {
      let value = 0;
      return {
        next: async () => {
          value += 1;
          return { done: false as const, value };
        },
        return: async () => {
          throw new Error('cannot be closed');
        },
      };
    },
  };
  const { taken, runtime } = await collect(source, controller.signal, {
    at: 2,
    act: () => controller.abort(),
  });
  expect(taken).toEqual([1, 2]);
  await waitFor(() => runtime.lines.some(({ msg }) => /after its answer was cancelled/.test(String(msg))));
});

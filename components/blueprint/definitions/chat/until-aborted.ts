import type { Logger } from '#kit/log/log.ts';

/**
 * The values of a source until a signal aborts, without waiting for the value that the source is about to give. The
 * source is closed when its values are not taken to the end; what it throws from then on is logged alone.
 */
export async function* untilAborted<Value>(
  source: AsyncIterable<Value>,
  signal: AbortSignal,
  log: Logger,
): AsyncGenerator<Value> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
  signal.addEventListener('abort', () => resolve(undefined), { once: true });
  const iterator = source[Symbol.asyncIterator]();
  let isOpen = true;
  try {
    while (!signal.aborted) {
      const next = await Promise.race([
        nextOf(iterator, () => {
          isOpen = false;
        }),
        aborted,
      ]);
      if (next === undefined || next.done === true) return;
      yield next.value;
    }
  } finally {
    if (isOpen) void close(iterator, log);
  }
}

/** The next value; `over` is called when there are no further ones. */
async function nextOf<Value>(
  iterator: AsyncIterator<Value, unknown>,
  over: () => void,
): Promise<IteratorResult<Value, unknown>> {
  try {
    const next = await iterator.next();
    if (next.done === true) over();
    return next;
  } catch (error) {
    over();
    throw error;
  }
}

async function close(iterator: AsyncIterator<unknown, unknown>, log: Logger): Promise<void> {
  try {
    await iterator.return?.();
  } catch (error) {
    log.debug({ err: error }, 'a provider of the chat failed after its answer was cancelled');
  }
}

/** Polls every 20 ms until the answer is not undefined; throws with `what` when the deadline passes. */
export async function until<T>(
  what: string,
  deadlineMs: number,
  ask: () => Promise<T | undefined>,
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) {
      return answer;
    }
    if (performance.now() > deadline) {
      throw new Error(`${what}: not within ${deadlineMs / 1000} s`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Runs `act` over all items, at most `width` at a time. Results keep the items' order. */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  act: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      const item = items[index] as T;
      results[index] = await act(item, index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results;
}

export interface WaitOptions {
  /** Maximum time to wait; 10 000 when absent. */
  readonly deadlineMs?: number;
  /** Time between two checks; 10 when absent. */
  readonly everyMs?: number;
  /** Names the condition in the message of a failure. */
  readonly what?: string;
}

/**
 * Checks a condition repeatedly until its value is neither false nor undefined.
 *
 * @returns that value.
 * @throws Error at the deadline, with the last error of the condition as its cause.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: WaitOptions = {},
): Promise<Exclude<T, false | undefined>> {
  const { deadlineMs = 10_000, everyMs = 10, what = 'the condition' } = options;
  const endsAt = performance.now() + deadlineMs;
  let cause: unknown;
  do {
    try {
      const value = await condition();
      cause = undefined;
      if (value !== false && value !== undefined) {
        return value as Exclude<T, false | undefined>;
      }
    } catch (error) {
      cause = error;
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  } while (performance.now() < endsAt);
  throw new Error(`waited ${deadlineMs} ms for ${what}`, { cause });
}

import { UnexpectedAnswer } from '../harness/api.ts';

/** Prints one line a step: number, action, result, duration. */
export interface Steps {
  /** Runs a step; its `said` ends the line. An error is printed and thrown again. */
  run<T>(title: string, act: () => Promise<readonly [said: string, result: T]>): Promise<T>;
  readonly startedAt: number;
}

export function createSteps(write: (text: string) => void): Steps {
  let number = 0;
  return {
    startedAt: performance.now(),
    run: async (title, act) => {
      number += 1;
      write(`${String(number).padStart(2)}  ${title} ... `);
      const startedAt = performance.now();
      try {
        const [said, result] = await act();
        write(`${said} (${duration(performance.now() - startedAt)})\n`);
        return result;
      } catch (error) {
        write(`FAILED after ${duration(performance.now() - startedAt)}\n`);
        throw error;
      }
    },
  };
}

export function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Text of a failed step for people. */
export function explain(error: unknown): string {
  if (error instanceof UnexpectedAnswer) {
    return error.message;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

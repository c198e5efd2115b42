import { z } from 'zod';
import type { Reader } from '#kit/db/db.ts';
import type { AnswerHeaders } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Scope } from '../../registers/state/store.ts';
import type { Projector } from './jobs.ts';
import {
  type BehindRegister,
  behindRegisters,
  projectedHeight,
  projectionProgress,
  stillBehind,
} from './progress/store.ts';

/** Request headers of a query over one register. */
export const freshnessHeaders = z.object({
  'x-min-docket': z
    .string()
    .regex(/^(0|[1-9]\d{0,14})$/, 'expected a docket number')
    .optional()
    .describe(
      'Waits up to a second until the answer covers this docket; X-As-Of-Docket tells whether it does.',
    ),
});

/** Answer headers of a query over one register. */
export const asOfHeaders = {
  'x-as-of-docket': 'Number of the last docket that the answer covers; absent before docket 0.',
} as const;

interface SettledRegister {
  readonly registerNo: number;
  readonly height: number;
}

/** Index rows are written shortly after a docket is stored. Queries wait for them, and say how far they are. */
export interface Freshness {
  /**
   * Waits briefly until the index rows of a register cover the docket of `X-Min-Docket`, or else the register as it was
   * read for the request; returns the headers of the answer.
   */
  settle(register: SettledRegister, headers: Readonly<Record<string, unknown>>): Promise<AnswerHeaders>;
  /**
   * The same for all registers that a caller sees, or for those of them with the given ids. Answers over several
   * registers have no header.
   */
  settleAll(scope: Scope, registerIds?: readonly string[]): Promise<void>;
}

interface FreshnessDeps {
  readonly db: Reader<RegisterSchema>;
  readonly projector: Pick<Projector, 'wake' | 'progress' | 'isFailing'>;
}

const longestWaitMs = 1_000;
/** Interval of reading the cursor, for rows that another process writes. */
const pollMs = 25;
/** A larger lag is a backlog: a second of waiting does not help. */
const usualLag = 128;
const mostRegisters = 100;

/** Headers of an answer that covers a register up to a height. */
export function asOf(height: number): AnswerHeaders {
  return { 'x-as-of-docket': height === 0 ? undefined : String(height - 1) };
}

export function createFreshness({ db, projector }: FreshnessDeps): Freshness {
  /** The cursor, as soon as it is at `height` or the time is up. */
  async function waitFor(registerNo: number, height: number, deadline: number): Promise<number> {
    for (;;) {
      const { projected, head } = await projectionProgress(db, registerNo);
      const leftMs = deadline - performance.now();
      if (projected >= height || leftMs <= 0) return projected;
      // A docket that is not stored yet has no rows to write.
      if (projected < head) projector.wake(registerNo);
      await projector.progress(registerNo, Math.min(pollMs, leftMs));
    }
  }

  return {
    async settle({ registerNo, height }, headers) {
      const asked = headers['x-min-docket'];
      const now = performance.now();
      if (typeof asked === 'string')
        return asOf(await waitFor(registerNo, Number(asked) + 1, now + longestWaitMs));
      const projected = await projectedHeight(db, registerNo);
      const mayWait = height - projected <= usualLag && !projector.isFailing(registerNo);
      if (projected >= height || !mayWait) return asOf(projected);
      return asOf(await waitFor(registerNo, height, now + longestWaitMs));
    },
    async settleAll(scope, registerIds) {
      const deadline = performance.now() + longestWaitMs;
      const behind = await behindRegisters(db, { scope, registerIds, limit: mostRegisters });
      let waiting: readonly BehindRegister[] = behind.filter(
        ({ registerNo, lag }) => lag <= usualLag && !projector.isFailing(registerNo),
      );
      for (const { registerNo } of waiting) projector.wake(registerNo);
      while (waiting.length > 0) {
        const ms = Math.min(pollMs, deadline - performance.now());
        if (ms <= 0) return;
        await Promise.all(waiting.map(({ registerNo }) => projector.progress(registerNo, ms)));
        waiting = await stillBehind(db, waiting);
      }
    },
  };
}

/**
 * Waits until the index rows of a register cover its height.
 * @throws AppError unavailable REGISTER_NOT_READY when they do not in time
 */
export async function untilProjected(db: Reader<RegisterSchema>, register: SettledRegister): Promise<void> {
  const deadline = performance.now() + longestWaitMs;
  while ((await projectedHeight(db, register.registerNo)) < register.height) {
    if (performance.now() >= deadline) throw refusal('REGISTER_NOT_READY', { retryAfterSeconds: 1 });
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

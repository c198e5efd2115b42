import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { failure } from '../../errors.ts';
import type { Origin } from '../../intake/admission/admission.ts';
import type { Answer } from '../../intake/admission/answer.ts';
import { answerText, type SubmissionDeps } from './answer-submission.ts';
import type { Forward } from './forward.ts';

/** Submissions of one batch. */
export const maxBatchSize = 1_000;

/** Number of submissions read before the event loop gets a turn, so that a vote does not wait for the end of a batch. */
const readAtOnce = 64;
/** Number of submissions of one batch that are being forwarded at the same time. */
const forwardedAtOnce = 64;

const newline = 0x0a;

/** Texts of submissions, decoded on access so that a thousand of them are not held in memory. */
export interface SubmissionTexts {
  readonly count: number;
  at(index: number): string;
}

/**
 * Splits a body into lines (NDJSON), ignoring the last newline.
 * @throws AppError invalid INVALID_REQUEST for an empty body and for invalid UTF-8; too_large BATCH_TOO_LARGE
 */
export function parseBatch(body: Buffer): SubmissionTexts {
  if (!isUtf8(body)) throw failure('INVALID_REQUEST', { message: 'The body is not valid UTF-8.' });
  const starts: number[] = [];
  for (let start = 0; start < body.length; ) {
    starts.push(start);
    assertSize(starts.length);
    const found = body.indexOf(newline, start);
    start = found === -1 ? body.length : found + 1;
  }
  assertSize(starts.length);
  const lineEnd = (next: number) => (body[next - 1] === newline ? next - 1 : next);
  return {
    count: starts.length,
    at: (index) => body.toString('utf8', starts[index], lineEnd(starts[index + 1] ?? body.length)),
  };
}

/** Throws AppError invalid INVALID_REQUEST for an empty batch, too_large BATCH_TOO_LARGE for one over the bound. */
export function assertSize(count: number): void {
  if (count === 0) throw failure('INVALID_REQUEST', { message: 'The batch is empty.' });
  if (count > maxBatchSize) {
    throw failure('BATCH_TOO_LARGE', { message: `A batch has at most ${maxBatchSize} transactions.` });
  }
}

/**
 * Judges each submission of a batch as if it had been sent alone, in order, so that one may follow another of the batch.
 * All must be for the register of the first readable one, so that a batch needs one lookup.
 */
export async function answerBatch(
  options: SubmissionDeps,
  texts: SubmissionTexts,
  origin: Origin,
): Promise<readonly Answer[]> {
  const forward = options.forward && limitConcurrency(options.forward, forwardedAtOnce);
  const answering = { ...options, forward };
  const restricted = { ...origin, assertRegister: oneRegister() };
  const answers: Promise<Answer>[] = [];
  await options.admission.readSequentially(async () => {
    for (let index = 0; index < texts.count; index += 1) {
      if (index > 0 && index % readAtOnce === 0) await nextTurn();
      answers.push(answerText(answering, () => texts.at(index), restricted));
    }
  });
  return Promise.all(answers);
}

function oneRegister(): (registerId: string) => void {
  let first: string | undefined;
  return (registerId) => {
    first ??= registerId;
    if (registerId === first) return;
    throw failure('BATCH_REGISTER');
  };
}

/** Limits the number of concurrent calls; further calls are queued. */
function limitConcurrency(forward: Forward, limit: number): Forward {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (text, origin, refusal) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await forward(text, origin, refusal);
    } finally {
      // the next queued call takes over this slot
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

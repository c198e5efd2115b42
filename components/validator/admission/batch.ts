import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '#core/errors/errors.ts';
import type { Origin } from './admission.ts';
import type { Answer } from './answer.ts';
import { type Answering, answerText } from './answering.ts';
import type { Forward } from './forward.ts';

/** Submissions of one batch. */
export const MAX_BATCH = 1_000;

/** So many are read before anything else gets its turn: a vote does not wait for a whole batch. */
const readAtOnce = 64;
/** So many of one batch are on their way to other validators. */
const forwardedAtOnce = 64;

const newline = 0x0a;

/** Texts of submissions, each decoded when it is asked for: a thousand of them are not kept while they wait. */
export interface Texts {
  readonly count: number;
  at(index: number): string;
}

/**
 * The lines of a body (NDJSON), the last newline left out.
 * @throws AppError invalid INVALID_REQUEST for no line and for what is no UTF-8; too_large BATCH_TOO_LARGE
 */
export function parseBatch(body: Buffer): Texts {
  if (!isUtf8(body)) throw new AppError('invalid', 'INVALID_REQUEST', 'The body is not valid UTF-8.');
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
  if (count === 0) throw new AppError('invalid', 'INVALID_REQUEST', 'The batch is empty.');
  if (count > MAX_BATCH) {
    throw new AppError('too_large', 'BATCH_TOO_LARGE', `A batch has at most ${MAX_BATCH} transactions.`);
  }
}

/**
 * Judges each submission of a batch as if it had come alone, in their order: one may follow another one of the batch. The
 * register of the first that can be read is that of all: others are refused, so that a batch asks about one register.
 */
export async function answerBatch(
  options: Answering,
  texts: Texts,
  origin: Origin,
): Promise<readonly Answer[]> {
  const forward = options.forward && bounded(options.forward, forwardedAtOnce);
  const answering = { ...options, forward };
  const within = { ...origin, assertRegister: oneRegister() };
  const answers: Promise<Answer>[] = [];
  await options.admission.readInTurn(async () => {
    for (let index = 0; index < texts.count; index += 1) {
      if (index > 0 && index % readAtOnce === 0) await nextTurn();
      answers.push(answerText(answering, () => texts.at(index), within));
    }
  });
  return Promise.all(answers);
}

function oneRegister(): (registerId: string) => void {
  let first: string | undefined;
  return (registerId) => {
    first ??= registerId;
    if (registerId === first) return;
    throw new AppError('invalid', 'BATCH_REGISTER', 'All transactions of a batch are for one register');
  };
}

/** At most so many at the same time; the others wait for their turn. */
function bounded(forward: Forward, most: number): Forward {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (text, origin, refusal) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await forward(text, origin, refusal);
    } finally {
      // whose turn it is now takes this place
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

import { Worker } from 'node:worker_threads';
import { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusal } from '../../../errors.ts';
import type { ListFaultKind } from '../values/fault.ts';
import type { ReadList } from '../values/list.ts';
import type { Pin } from '../values/signers.ts';
import type { ReadingOutcome, ReadingTask } from './messages.ts';

/** Reads trust lists in a thread each, one at a time; the service continues, no matter what a document contains. */
export interface ListReader {
  /** @throws TRUSTLIST_MALFORMED, also for one that takes too much time or memory; TRUSTLIST_SIGNATURE_INVALID,
   * TRUSTLIST_IMPORT_BUSY */
  read(document: Uint8Array, pin: Pin): Promise<ReadList>;
  /** Ends the thread; lists that wait are refused. */
  close(): Promise<void>;
}

interface ReaderOptions {
  readonly log: Logger;
  /** Time of one list on the clock, start of its thread included, ms; 20,000 when absent. */
  readonly longestMs?: number;
  /** Memory of a thread, MiB; 256 when absent. */
  readonly memoryMb?: number;
  /** Code of the thread; tests replace it. */
  readonly threadUrl?: URL;
}

const defaults = { longestMs: 20_000, memoryMb: 256 } as const;
/** Each holds a document of up to 10 MiB. */
const mostWaiting = 4;

const codes = { malformed: 'TRUSTLIST_MALFORMED', signature: 'TRUSTLIST_SIGNATURE_INVALID' } as const;

export function createListReader(options: ReaderOptions): ListReader {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  const closing = new AbortController();

  async function read(document: Uint8Array, pin: Pin): Promise<ReadList> {
    if (closing.signal.aborted || waiting >= mostWaiting) {
      throw refusal('TRUSTLIST_IMPORT_BUSY', { retryAfterSeconds: 5 });
    }
    waiting += 1;
    const earlier = last;
    const run = async () => {
      await earlier;
      waiting -= 1;
      return runThread(options, { document: Uint8Array.from(document), pin }, closing.signal);
    };
    const outcome = run();
    last = outcome.catch(() => undefined);
    return resultOf(await outcome);
  }

  return {
    read,
    close: async () => {
      closing.abort();
      await last;
    },
  };
}

function resultOf(outcome: ReadingOutcome): ReadList {
  if ('list' in outcome) return outcome.list;
  throw faultOf(outcome.fault, outcome.message);
}

function faultOf(kind: ListFaultKind, message: string): AppError {
  return refusal(codes[kind], { message: `The trust list is refused: ${message}.` });
}

async function runThread(
  options: ReaderOptions,
  task: ReadingTask,
  closing: AbortSignal,
): Promise<ReadingOutcome> {
  if (closing.aborted) throw refusal('TRUSTLIST_IMPORT_BUSY');
  const { longestMs, memoryMb } = { ...defaults, ...options };
  const worker = new Worker(options.threadUrl ?? new URL('./thread.ts', import.meta.url), {
    execArgv: [],
    workerData: task,
    transferList: [task.document.buffer as ArrayBuffer],
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
  });
  const { promise, resolve, reject } = Promise.withResolvers<ReadingOutcome>();
  let hasEnded = false;
  const end = (outcome: ReadingOutcome) => {
    hasEnded = true;
    resolve(outcome);
  };
  const fail = (cause: unknown) => {
    // a thread exits after its answer, and after an error, too
    if (!hasEnded) reject(failure(options.log, cause));
    hasEnded = true;
  };
  const tooMuch = () => end({ fault: 'malformed', message: 'reading it takes too much time or memory' });
  const timer = setTimeout(tooMuch, longestMs);
  const stop = () => reject(refusal('TRUSTLIST_IMPORT_BUSY'));
  closing.addEventListener('abort', stop, { once: true });
  worker.on('message', end);
  worker.on('error', (error) => (isOutOfMemory(error) ? tooMuch() : fail(error)));
  worker.on('exit', () => fail(new Error('the thread ended without an answer')));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    closing.removeEventListener('abort', stop);
    worker.removeAllListeners('exit');
    await worker.terminate();
  }
}

function failure(log: Logger, cause: unknown): AppError {
  log.error({ err: cause }, 'a thread that reads a trust list has failed');
  return new AppError('internal', 'INTERNAL_ERROR', 'the trust list could not be read', { cause });
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

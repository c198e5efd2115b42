import { setTimeout as setTimeoutOf } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { execDefHash } from '#core/blueprint/hashes.ts';
import { errorAt } from '#core/blueprint/model/finding.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusal } from '../errors.ts';
import type { Exported, ExportFormat } from './export.ts';
import type { Judged } from './judge.ts';
import type { Answered, Question, Task } from './tasks.ts';

/** Handles drafts in threads of their own; the service continues, no matter what a draft contains. */
export interface DraftJudge {
  /**
   * Judges a definition. One that takes longer than its time, or more memory, is found to be too complex.
   * @throws AppError unavailable DRAFT_JUDGING_BUSY when too many wait
   */
  judge(definition: JsonObject): Promise<Judged>;
  /**
   * Answers about an action of a definition.
   * @throws AppError unprocessable DRAFT_TOO_COMPLEX, unavailable DRAFT_JUDGING_BUSY
   */
  answer(definition: JsonObject, question: Question): Promise<Answered>;
  /**
   * Writes a definition as a document.
   * @throws AppError too_large EXPORT_TOO_LARGE, unprocessable DRAFT_TOO_COMPLEX, unavailable DRAFT_JUDGING_BUSY
   */
  export(definition: JsonObject, format: ExportFormat): Promise<string>;
  /** Ends the threads; waiting definitions are refused. */
  close(): Promise<void>;
}

interface PoolOptions {
  /** Threads, at least one. */
  readonly workers: number;
  readonly log: Logger;
  /** Whether a credential service is configured. */
  readonly credentials: boolean;
  /** Processor time for one definition, ms; 250 when absent. The start of a thread is not counted. */
  readonly budgetMs?: number;
  /** Time for one definition on the clock, ms, however busy the machine is; 5,000 when absent. */
  readonly longestMs?: number;
  /** Definitions that wait; 64 when absent. */
  readonly mostWaiting?: number;
  /** Code of the thread; tests replace it. */
  readonly workerUrl?: URL;
}

interface Work {
  readonly task: Task;
  /** JSON text of the answer. */
  readonly resolve: (answer: string) => void;
  readonly reject: (error: unknown) => void;
  /** Called when the task takes too long or too much memory. */
  readonly onTooMuch: () => void;
}

interface Thread {
  readonly worker: Worker;
  work: Work | undefined;
  /** Processor time that the thread had used before its work. */
  before: ReturnType<Worker['cpuUsage']> | undefined;
  timer: NodeJS.Timeout | undefined;
}

const memoryMb = 128;
const shortestLookMs = 10;
const longestStartMs = 30_000;
const defaults = { budgetMs: 250, longestMs: 5_000, mostWaiting: 64 } as const;

const tooComplex = (definition: JsonObject): Judged => ({
  findings: [
    errorAt(
      '',
      'VAL_BP_TOO_COMPLEX',
      'Checking the definition takes too long; make its schemas and conditions simpler',
    ),
  ],
  execDefHash: execDefHash(definition),
});

/** Starts threads as definitions arrive; an idle thread does not keep the process alive. */
export function createDraftJudge(options: PoolOptions): DraftJudge {
  return new Pool(options);
}

class Pool implements DraftJudge {
  readonly #options: PoolOptions;
  readonly #idle: Thread[] = [];
  readonly #threads = new Set<Thread>();
  readonly #waiting: Work[] = [];
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  judge(definition: JsonObject): Promise<Judged> {
    const { promise, resolve, reject } = Promise.withResolvers<Judged>();
    const { credentials } = this.#options;
    this.#add({
      task: { kind: 'judge', definition: JSON.stringify(definition), credentials },
      resolve: (answer) => resolve(JSON.parse(answer)),
      reject,
      onTooMuch: () => resolve(tooComplex(definition)),
    });
    return promise;
  }

  answer(definition: JsonObject, question: Question): Promise<Answered> {
    return this.#run<Answered>({ kind: 'answer', definition: JSON.stringify(definition), question });
  }

  async export(definition: JsonObject, format: ExportFormat): Promise<string> {
    const task = { kind: 'export', definition: JSON.stringify(definition), format } as const;
    const { text } = await this.#run<Exported>(task);
    if (text === undefined) throw refusal('EXPORT_TOO_LARGE');
    return text;
  }

  /** The answer to a task that is refused when it takes too much. */
  #run<Answer>(task: Task): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#add({
      task,
      resolve: (answer) => resolve(JSON.parse(answer)),
      reject,
      onTooMuch: () => reject(refusal('DRAFT_TOO_COMPLEX')),
    });
    return promise;
  }

  #add(work: Work): void {
    const { mostWaiting = defaults.mostWaiting } = this.#options;
    if (this.#closed || this.#waiting.length >= mostWaiting) {
      work.reject(refusal('DRAFT_JUDGING_BUSY', { retryAfterSeconds: 1 }));
      return;
    }
    this.#waiting.push(work);
    this.#dispatch();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const busy = [...this.#threads].flatMap(({ work }) => work ?? []);
    for (const work of [...busy, ...this.#waiting.splice(0)]) work.reject(refusal('DRAFT_JUDGING_BUSY'));
    const threads = [...this.#threads];
    this.#threads.clear();
    for (const { timer } of threads) clearTimeout(timer);
    await Promise.all(threads.map(({ worker }) => worker.terminate()));
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#idle.pop();
      if (thread === undefined) {
        if (this.#threads.size < this.#options.workers) this.#spawn();
        return;
      }
      this.#begin(thread);
    }
  }

  #begin(thread: Thread): void {
    const work = this.#waiting.shift();
    if (work === undefined) return;
    thread.work = work;
    thread.worker.ref();
    thread.before = thread.worker.cpuUsage();
    thread.worker.postMessage(JSON.stringify(work.task));
    const { budgetMs = defaults.budgetMs, longestMs = defaults.longestMs } = this.#options;
    thread.timer = setTimeout(() => this.#end(thread), longestMs);
    void this.#watch(thread, work, budgetMs);
  }

  /** Ends the thread when its work has taken its processor time: on a busy machine that is later than on the clock. */
  async #watch(thread: Thread, work: Work, budgetMs: number): Promise<void> {
    const { worker } = thread;
    try {
      const before = await thread.before;
      for (let leftMs = budgetMs; leftMs > 0; ) {
        await setTimeoutOf(Math.max(leftMs, shortestLookMs), undefined, { ref: false });
        if (thread.work !== work) return;
        const { user, system } = await worker.cpuUsage(before);
        leftMs = budgetMs - (user + system) / 1_000;
      }
    } catch (error) {
      // A thread that has ended tells no usage, and its work is settled where it ends.
      if (!this.#threads.has(thread)) return;
      throw error;
    }
    if (thread.work === work) this.#end(thread);
  }

  #spawn(): void {
    const url = this.#options.workerUrl ?? new URL('./worker.ts', import.meta.url);
    const worker = new Worker(url, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: memoryMb } });
    const thread: Thread = { worker, work: undefined, before: undefined, timer: undefined };
    thread.timer = setTimeout(
      () => this.#fail(thread, new Error('the thread does not start')),
      longestStartMs,
    );
    worker.on('message', (text: string) => this.#finish(thread, text));
    worker.on('error', (error) => this.#fail(thread, error));
    this.#threads.add(thread);
  }

  /** The thread is ready, or has judged its definition. */
  #finish(thread: Thread, text: string): void {
    if (!this.#threads.has(thread)) return;
    clearTimeout(thread.timer);
    const { work } = thread;
    thread.work = undefined;
    work?.resolve(text);
    thread.worker.unref();
    this.#idle.push(thread);
    this.#dispatch();
  }

  /** Ends a thread whose definition takes too long. */
  #end(thread: Thread): void {
    const { work } = thread;
    this.#drop(thread);
    work?.onTooMuch();
    this.#dispatch();
  }

  #fail(thread: Thread, error: unknown): void {
    if (!this.#threads.has(thread)) return;
    const { work } = thread;
    this.#drop(thread);
    const { log } = this.#options;
    if (isOutOfMemory(error)) {
      work?.onTooMuch();
    } else {
      log.error({ err: error }, 'a thread that judges drafts has failed');
      const cause = { cause: error };
      const lost = work ?? this.#waiting.shift();
      lost?.reject(new AppError('internal', 'INTERNAL_ERROR', 'the draft could not be judged', cause));
    }
    this.#dispatch();
  }

  #drop(thread: Thread): void {
    clearTimeout(thread.timer);
    this.#threads.delete(thread);
    const at = this.#idle.indexOf(thread);
    if (at >= 0) this.#idle.splice(at, 1);
    thread.work = undefined;
    void thread.worker.terminate();
  }
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

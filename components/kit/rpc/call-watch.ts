import { AppError } from '#core/errors/errors.ts';

/** A timer of Node with a longer delay would fire at once. */
export const timerLimitMs = 2 ** 31 - 1;

/**
 * Follows one call at the server until it is answered or aborted: cancelled by the client, late, of a lost connection or
 * of an expired certificate.
 */
export class CallWatch {
  #controller: AbortController | undefined;
  #reason: AppError | undefined;
  #reject: ((reason: AppError) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<unknown> | undefined;
  #isAnswered = false;

  /** Aborted with the call. Most handlers do not read it, so it is created when it is read. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Aborts the call now, unless it has been answered. Only the first reason counts. */
  abort(reason: AppError): void {
    if (this.#isAnswered || this.#reason !== undefined) return;
    this.#reason = reason;
    clearTimeout(this.#timer);
    this.#controller?.abort(reason);
    this.#reject?.(reason);
  }

  /** Aborts the call after this many milliseconds. */
  abortAfter(ms: number, reason: () => AppError): void {
    if (ms > timerLimitMs) return;
    this.#timer = setTimeout(() => this.abort(reason()), Math.max(0, ms));
    this.#timer.unref();
  }

  /** The result of the handler, or the reason of the abort when that comes first. An aborted call has no handler. */
  async run<T>(handle: () => Promise<T>): Promise<T> {
    if (this.#reason !== undefined) throw this.#reason;
    const work = handle();
    this.#work = work;
    return await new Promise<T>((resolve, reject) => {
      this.#reject = reject;
      work.then(resolve, reject);
    });
  }

  /** Calls back when the handler has returned, which may be long after an abort; at once when there was none. */
  whenReturned(callback: () => void): void {
    if (this.#work === undefined) callback();
    else this.#work.then(callback, callback);
  }

  /** The call has been answered; nothing aborts it any longer. */
  close(): void {
    this.#isAnswered = true;
    clearTimeout(this.#timer);
  }
}

/** The reason of a call that its client has given up, or whose connection was lost. */
export function callCancelled(): AppError {
  return new AppError('unavailable', 'RPC_CANCELLED', 'the call was cancelled');
}

import { isAppError } from '#core/errors/errors.ts';
import type { Work } from '../statistics/work-counter.ts';
import type { Admitted } from './answer.ts';

/**
 * One submission until it is on disk or refused. Thousands are in flight at once, so each has exactly one promise and no
 * intermediate ones.
 */
export class Arrival {
  /** Rejects with the AppError that refuses it. */
  readonly promise: Promise<Admitted>;
  readonly #resolve: (admitted: Admitted) => void;
  readonly #reject: (error: unknown) => void;
  readonly #judged: (outcome: string) => void;
  #work: Work | undefined;
  #sinceMicros = 0;
  #isSettled = false;

  constructor(judged: (outcome: string) => void) {
    const { promise, resolve, reject } = Promise.withResolvers<Admitted>();
    this.promise = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#judged = judged;
  }

  /** Attributes the submission to the statistics of a register. */
  countIn(work: Work): void {
    this.#work = work;
    this.#sinceMicros = work.received();
  }

  /** Has no effect once the submission is settled. */
  admit(admitted: Admitted): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#judged(admitted.added ? 'added' : 'known');
    this.#work?.validated(this.#sinceMicros);
    this.#resolve(admitted);
  }

  /** As `admit`. */
  refuse(error: unknown): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const code = isAppError(error) ? error.code : 'INTERNAL_ERROR';
    this.#judged(code);
    this.#work?.rejected(this.#sinceMicros, code);
    this.#reject(error);
  }
}

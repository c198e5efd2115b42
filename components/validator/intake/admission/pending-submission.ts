import { isAppError } from '#core/errors/errors.ts';
import type { WorkCounter } from '../../chain/sealing/work-counter.ts';
import type { Admitted } from './answer.ts';

/**
 * One submission until it is on disk or refused. Thousands are in flight at once, so each has exactly one promise and no
 * intermediate ones.
 */
export class PendingSubmission {
  /** Rejects with the AppError that refuses it. */
  readonly promise: Promise<Admitted>;
  readonly #resolve: (admitted: Admitted) => void;
  readonly #reject: (error: unknown) => void;
  readonly #submissionAnswered: (outcome: string) => void;
  #work: WorkCounter | undefined;
  #sinceMicros = 0;
  #isSettled = false;

  constructor(submissionAnswered: (outcome: string) => void) {
    const { promise, resolve, reject } = Promise.withResolvers<Admitted>();
    this.promise = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#submissionAnswered = submissionAnswered;
  }

  /** Attributes the submission to the statistics of a register. */
  attributeTo(work: WorkCounter): void {
    this.#work = work;
    this.#sinceMicros = work.received();
  }

  /** Has no effect once the submission is settled. */
  admit(admitted: Admitted): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#submissionAnswered(admitted.added ? 'added' : 'known');
    this.#work?.validated(this.#sinceMicros);
    this.#resolve(admitted);
  }

  /** As `admit`. */
  refuse(error: unknown): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const code = isAppError(error) ? error.code : 'INTERNAL_ERROR';
    this.#submissionAnswered(code);
    this.#work?.rejected(this.#sinceMicros, code);
    this.#reject(error);
  }
}

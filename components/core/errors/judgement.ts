import { isAppError, type Violation, violation } from './errors.ts';

/** What a judgement found: violations, or the result when there are none. */
export type Judgement<T> =
  | { readonly violations: readonly [Violation, ...Violation[]]; readonly result?: undefined }
  | { readonly violations: readonly []; readonly result: T };

/**
 * Runs a judgement that refuses by `AppError`: the first refusal becomes the violation, with the code of the error.
 * Anything else that is thrown is a defect and is thrown again.
 */
export function judge<T>(compute: () => T): Judgement<T> {
  try {
    return { violations: [], result: compute() };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { violations: [error.violations?.[0] ?? violation(error.code, error.message)] };
  }
}

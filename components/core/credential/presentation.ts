import { AppError, isAppError, type Violation, violation } from '../errors/errors.ts';

/** Codes of a presentation's result, as verifiers report them. Status and trust have codes of their own. */
export type PresentationCode =
  | 'FORMAT'
  | 'VCT_MISMATCH'
  | 'SIGNATURE'
  | 'DIGEST'
  | 'EXPIRED'
  | 'KB_MISSING'
  | 'KB_NONCE'
  | 'KB_AUD'
  | 'KB_SD_HASH'
  | 'KB_SIGNATURE'
  | 'CLAIM_MISSING'
  | 'CLAIM_VALUE';

/** Clocks of issuers and holders may differ from ours by this much. */
export const CLOCK_LEEWAY_SECONDS = 60;

/** Refuses a presentation inside a judgement; `judge` makes a violation of it. */
export function refusePresentation(code: PresentationCode, message: string, field?: string): never {
  throw new AppError('unprocessable', code, message, { violations: [violation(code, message, field)] });
}

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

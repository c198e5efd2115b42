import { AppError, violation } from '../errors/errors.ts';

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
  | 'CLAIM_VALUE'
  | 'DEVICE_MAC_UNSUPPORTED';

/** Clocks of issuers and holders may differ from ours by this much. */
export const CLOCK_LEEWAY_SECONDS = 60;

/** Refuses a presentation inside a judgement; `judge` of core/errors makes a violation of it. */
export function refusePresentation(code: PresentationCode, message: string, field?: string): never {
  throw new AppError('unprocessable', code, message, { violations: [violation(code, message, field)] });
}

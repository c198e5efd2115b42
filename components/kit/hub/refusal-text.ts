import { type ErrorKind, isAppError } from '#core/errors/errors.ts';

/** Kinds of refusals whose texts clients see as they are. */
const shown: readonly ErrorKind[] = [
  'invalid',
  'rate_limited',
  'conflict',
  'gone',
  'precondition_failed',
  'unprocessable',
  'too_large',
];
const unauthorized: readonly ErrorKind[] = ['forbidden', 'not_found', 'unauthenticated'];

/** The text that answers an invocation that threw; `isFailure` when the client is not the cause. */
export function refusalTextOf(error: unknown): { readonly text: string; readonly isFailure: boolean } {
  if (isAppError(error)) {
    if (shown.includes(error.kind)) return { text: error.message, isFailure: false };
    if (unauthorized.includes(error.kind)) {
      return { text: `Unauthorized: ${error.message}`, isFailure: false };
    }
    if (error.kind === 'unavailable') return { text: error.message, isFailure: true };
  }
  return { text: 'The server failed.', isFailure: true };
}

import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { createRefusals } from '#kit/http/http.ts';

/** Error codes of this service. */
const codes = {
  GREETING_NOT_FOUND: ['not_found', 'the caller has no greeting'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Declares codes as refusals of a route. */
export const refusals = createRefusals(codes);

/** The error of a code. */
export function refusal(code: keyof typeof codes): AppError {
  const [kind, text] = codes[code];
  return new AppError(kind, code, text);
}

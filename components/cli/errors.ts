import { AppError, type AppErrorOptions, type ErrorKind } from '#core/errors/errors.ts';

/** Error codes of the command line. */
const codeKinds = {
  EXPORT_UNKNOWN: 'invalid',
  FILE_TOO_LARGE: 'unprocessable',
  FILE_UNREADABLE: 'not_found',
  INSTANCE_UNKNOWN: 'not_found',
  INVALID_ARGUMENTS: 'invalid',
  LINE_TOO_LONG: 'unprocessable',
  LINE_UNFINISHED: 'unprocessable',
} as const satisfies Record<string, ErrorKind>;

/** An error with one of these codes. */
export function cliError(code: keyof typeof codeKinds, message: string, options?: AppErrorOptions): AppError {
  return new AppError(codeKinds[code], code, message, options);
}

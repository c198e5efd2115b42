import { AppError, type AppErrorOptions, type ErrorKind } from '#core/errors/errors.ts';

/** Error codes of local mode. */
const codeKinds = {
  BROKER_LISTEN_FAILED: 'unavailable',
  COMMAND_REFUSED: 'conflict',
  COMPONENT_NOT_STARTED: 'unavailable',
  DATA_DIRECTORY_IN_USE: 'conflict',
  EMBEDDED_POSTGRES_ACCOUNT: 'unavailable',
  EMBEDDED_POSTGRES_FAILED: 'internal',
  EMBEDDED_POSTGRES_LOCKED: 'conflict',
  EMBEDDED_POSTGRES_MISSING: 'unavailable',
  EMBEDDED_POSTGRES_ROOT: 'unavailable',
  EMBEDDED_POSTGRES_SOCKET_PATH: 'invalid',
  INVALID_REQUEST: 'invalid',
  NOT_RUNNING: 'unavailable',
  PORT_IN_USE: 'conflict',
  PORT_TAKEN: 'unavailable',
  UNKNOWN_VALIDATOR: 'not_found',
  VALIDATORS_FIXED: 'conflict',
  VALIDATOR_RUNS: 'conflict',
} as const satisfies Record<string, ErrorKind>;

/** An error with one of these codes. */
export function localError(
  code: keyof typeof codeKinds,
  message: string,
  options?: AppErrorOptions,
): AppError {
  return new AppError(codeKinds[code], code, message, options);
}

import { AppError, type AppErrorOptions, type ErrorKind } from '#core/errors/errors.ts';

/** Error codes of the gateway. */
const codeKinds = {
  BAD_GATEWAY: 'bad_gateway',
  CLIENT_GONE: 'gone',
  ENDPOINT_GONE: 'timeout',
  GATEWAY_TIMEOUT: 'timeout',
  INVALID_REQUEST: 'invalid',
  NOT_FOUND: 'not_found',
  PAYLOAD_TOO_LARGE: 'too_large',
  SERVICE_UNAVAILABLE: 'unavailable',
} as const satisfies Record<string, ErrorKind>;

/** An error with one of these codes. */
export function gatewayError(
  code: keyof typeof codeKinds,
  message: string,
  options?: AppErrorOptions,
): AppError {
  return new AppError(codeKinds[code], code, message, options);
}

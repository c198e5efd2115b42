import { AppError, isAppError } from '#core/errors/errors.ts';
import type { ProblemCode } from '../answers/problem.ts';
import { gatewayError } from '../errors.ts';
import type { CallFailure } from './exchange.ts';

const timeouts = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

/** Errors of the network before TLS: the service is unreachable rather than faulty. */
const absent = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
]);

/** Errors of an established connection: the peer closed it, or no longer answers keep-alive probes. */
const lost = new Set(['ECONNRESET', 'EPIPE', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'UND_ERR_SOCKET']);

/** The error of calls to an endpoint that no longer answers. */
export function endpointGone(): AppError {
  return gatewayError('ENDPOINT_GONE', 'the endpoint no longer answers');
}

/** Whether a call failed with its connection after it was sent, so that its outcome is unknown. */
export function isConnectionLost({ stage, error }: CallFailure): boolean {
  return stage === 'request' && (isAppError(error, 'timeout') || lost.has(errorCode(error)));
}

/** Whether later requests should use another endpoint. */
export function isAway(failure: CallFailure): boolean {
  return failure.stage === 'connect' || failure.stage === 'refused' || isConnectionLost(failure);
}

/** The client's view of a failed call: never the service's address or the error's text. */
export function judgeFailure(failure: CallFailure): { readonly code: ProblemCode; readonly detail: string } {
  const { error, stage } = failure;
  if (error instanceof AppError && error.kind === 'too_large') {
    return { code: 'PAYLOAD_TOO_LARGE', detail: 'The request body is too large.' };
  }
  const code = errorCode(error);
  if (stage === 'refused' || (stage === 'connect' && absent.has(code))) {
    return { code: 'SERVICE_UNAVAILABLE', detail: 'The service cannot be reached.' };
  }
  if (isAppError(error, 'timeout') || timeouts.has(code) || code === 'ETIMEDOUT') {
    return { code: 'GATEWAY_TIMEOUT', detail: 'The service did not answer in time.' };
  }
  return { code: 'BAD_GATEWAY', detail: 'The service did not give a usable answer.' };
}

function errorCode(error: Error): string {
  if ('code' in error && typeof error.code === 'string') return error.code;
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return errorCode(error.errors[0]);
  return '';
}

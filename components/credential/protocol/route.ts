import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import { errorAnswer, kindStatus } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { ProtocolError, type ProtocolErrorCode } from './errors.ts';

const text = z.string();

const protocolErrorSchema = z
  .object({
    error: text.describe('Error code of RFC 6749, RFC 9449 or OpenID4VCI.'),
    error_description: text.optional(),
    code: text.optional().describe('A further code for clients to match on.'),
  })
  .meta({ id: 'ProtocolError' });

const refusal = (description: string) => ({ ...errorAnswer(protocolErrorSchema), description });

/**
 * Members of a route that wallets call: refusals have the format of OAuth 2.0, bodies reach the handler as they were
 * parsed.
 */
export function walletRoute(log: () => Logger) {
  return {
    rateLimit: 'CredentialExchange',
    refusals: [],
    noStore: true,
    protocol: {
      errorHandler: protocolErrorHandler(log),
      validatorCompiler: () => (data: unknown) => ({ value: data }),
      refusals: {
        400: refusal('The request is refused; `error` says why.'),
        404: refusal('The request for presentations does not exist.'),
        409: refusal('`ALREADY_SUBMITTED`: an answer was accepted before.'),
        410: refusal('The request for presentations has expired or was answered.'),
        401: refusal('`invalid_token`, `use_dpop_nonce` or `invalid_dpop_proof`; see WWW-Authenticate.'),
        413: refusal('`invalid_request`: the body is too large.'),
        415: refusal('`invalid_request`: the content type is not supported.'),
        429: refusal('`slow_down`; see Retry-After.'),
        '5xx': refusal('`server_error` or `temporarily_unavailable`.'),
      },
    },
  } as const;
}

function protocolErrorHandler(log: () => Logger) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const error = toProtocolError(thrown);
    if (error.status >= 500)
      log().error({ err: thrown, traceId: request.traceId }, 'a wallet request failed');
    const { code } = error;
    const body = {
      error: error.error,
      error_description: error.message,
      ...(code !== undefined && { code }),
    };
    reply
      .code(error.status)
      .headers({ ...error.headers, 'cache-control': 'no-store', 'content-type': 'application/json' })
      .send(JSON.stringify(body));
  };
}

/** Converts any error of these routes; texts of internal errors are hidden. */
function toProtocolError(thrown: unknown): ProtocolError {
  if (thrown instanceof ProtocolError) return thrown;
  if (!(thrown instanceof AppError)) return fromFramework(thrown);
  const { kind, message, retryAfterSeconds } = thrown;
  const headers: Record<string, string> =
    retryAfterSeconds === undefined
      ? {}
      : { 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) };
  const made = (error: ProtocolErrorCode, description: string) =>
    new ProtocolError(error, description, { status: kindStatus[kind], headers, cause: thrown });
  if (kind === 'rate_limited') return made('slow_down', message);
  if (kind === 'internal') return made('server_error', 'An internal error occurred.');
  if (kindStatus[kind] >= 500) return made('temporarily_unavailable', message);
  if (kind === 'not_found' || kind === 'gone' || kind === 'conflict')
    return new ProtocolError('invalid_request', message, { status: kindStatus[kind], code: thrown.code });
  if (kind === 'unprocessable' || kind === 'locked')
    return new ProtocolError('credential_request_denied', message);
  return new ProtocolError('invalid_request', message, {
    headers,
    ...(thrown.code !== 'INVALID_REQUEST' && { code: thrown.code }),
  });
}

function fromFramework(thrown: unknown): ProtocolError {
  const status = thrown instanceof Error && 'statusCode' in thrown ? Number(thrown.statusCode) : 500;
  if (status === 413)
    return new ProtocolError('invalid_request', 'The request body is too large.', { status });
  if (status === 415)
    return new ProtocolError('invalid_request', 'The content type is not supported.', { status });
  const isInputFault = thrown instanceof Error && thrown.name === 'InputError';
  if (isInputFault || (status >= 400 && status < 500))
    return new ProtocolError('invalid_request', 'The request is malformed.');
  return new ProtocolError('server_error', 'An internal error occurred.', { status: 500, cause: thrown });
}

import { AppError } from '#core/errors/errors.ts';
import { kindStatus } from '#kit/http/problem.ts';

/** Error codes of RFC 6749 section 5.2, and this service's own for rate limits and outages. */
type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'unsupported_grant_type'
  | 'mfa_required'
  | 'slow_down'
  | 'temporarily_unavailable'
  | 'server_error';

/** An error of a token endpoint. */
export class OAuthError extends Error {
  readonly status: number;
  readonly error: OAuthErrorCode;
  /** Additional code beside the members of the RFC, such as SHARED_SECRETS_DISABLED. */
  readonly code: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Members of the answer beyond those of the RFC. */
  readonly members: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    error: OAuthErrorCode,
    description: string,
    options: {
      readonly code?: string;
      readonly retryAfterSeconds?: number | undefined;
      readonly cause?: unknown;
      readonly members?: Readonly<Record<string, unknown>>;
    } = {},
  ) {
    super(description, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'OAuthError';
    this.status = status;
    this.error = error;
    this.code = options.code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.members = options.members ?? {};
  }
}

interface OAuthErrorBody {
  readonly error: OAuthErrorCode;
  readonly error_description: string;
  readonly code?: string;
}

export function presentOAuthError(error: OAuthError): OAuthErrorBody {
  const body = { error: error.error, error_description: error.message, ...error.members };
  return error.code === undefined ? body : { ...body, code: error.code };
}

/** Converts any error of a token endpoint to an OAuth error. Texts of internal errors are hidden. */
export function toOAuthError(thrown: unknown): OAuthError {
  if (thrown instanceof OAuthError) return thrown;
  if (!(thrown instanceof AppError)) return fromFramework(thrown);
  const options = { cause: thrown, code: thrown.code, retryAfterSeconds: thrown.retryAfterSeconds };
  switch (thrown.kind) {
    case 'unauthenticated':
      return new OAuthError(401, 'invalid_grant', thrown.message, { cause: thrown });
    case 'forbidden':
      return new OAuthError(403, 'invalid_scope', thrown.message, options);
    case 'rate_limited':
      return new OAuthError(429, 'slow_down', thrown.message, options);
    case 'unavailable':
      return new OAuthError(503, 'temporarily_unavailable', thrown.message, options);
    case 'internal':
      return new OAuthError(500, 'server_error', 'An internal error occurred.', { cause: thrown });
    default:
      return new OAuthError(kindStatus[thrown.kind], 'invalid_request', thrown.message, options);
  }
}

function fromFramework(thrown: unknown): OAuthError {
  const status = thrown instanceof Error && 'statusCode' in thrown ? Number(thrown.statusCode) : 500;
  if (status === 413) return new OAuthError(413, 'invalid_request', 'The request body is too large.');
  if (status === 415) return new OAuthError(415, 'invalid_request', 'The content type is not supported.');
  const isOurs = Number.isNaN(status) || status >= 500 || status < 400;
  if (!isOurs || isInputFault(thrown))
    return new OAuthError(400, 'invalid_request', 'The request is malformed.');
  return new OAuthError(500, 'server_error', 'An internal error occurred.', { cause: thrown });
}

function isInputFault(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'InputError';
}

import { z } from 'zod';
import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { operatorError } from '../errors.ts';

interface ServiceCall {
  readonly method: string;
  readonly path: string;
}

const byStatus: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  410: 'gone',
  413: 'too_large',
  422: 'unprocessable',
  423: 'locked',
  429: 'rate_limited',
  501: 'not_implemented',
  502: 'bad_gateway',
  503: 'unavailable',
  504: 'timeout',
};

const maxDetail = 1024;

/** The used members of `application/problem+json` (RFC 9457); all are optional. */
const problemSchema = z
  .object({
    code: z.string().min(1).max(128).optional().catch(undefined),
    detail: z.string().optional().catch(undefined),
  })
  .loose()
  .catch({});

interface ServiceRefusalOptions {
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly members?: Readonly<Record<string, unknown>>;
}

/** A refusal by a service: kind, code, and a message for conditions. */
export class ServiceRefusal extends AppError {
  /** HTTP status. */
  readonly status: number;
  /** Additional members of the body, specific to the code. */
  readonly members: Readonly<Record<string, unknown>>;

  constructor(kind: ErrorKind, code: string, message: string, options: ServiceRefusalOptions) {
    super(kind, code, message, { retryAfterSeconds: options.retryAfterSeconds });
    this.name = 'ServiceRefusal';
    this.status = options.status;
    this.members = options.members ?? {};
  }

  /** Whether its code is one of these. */
  is(...codes: readonly string[]): boolean {
    return codes.includes(this.code);
  }
}

/** Whether a service refused with one of these codes. */
export function isRefusal(error: unknown, ...codes: readonly string[]): error is ServiceRefusal {
  return error instanceof ServiceRefusal && error.is(...codes);
}

interface FailedResponse {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Converts a failed response to a refusal. */
export function refusalOf(
  service: string,
  { method, path }: ServiceCall,
  answer: FailedResponse,
): ServiceRefusal {
  const { status, body, headers } = answer;
  const kind = byStatus[status] ?? (status >= 500 ? 'bad_gateway' : 'invalid');
  const { code = 'SERVICE_REFUSED', detail, ...members } = problemSchema.parse(body);
  const detailText = detail === undefined || detail === '' ? `HTTP ${status}` : detail.slice(0, maxDetail);
  const where = `${method} ${path.split('?')[0]}`;
  const seconds = Number(headers['retry-after']);
  return new ServiceRefusal(kind, code, `${service} refused (${code}): ${detailText} [${where}]`, {
    status,
    members,
    ...(Number.isFinite(seconds) && seconds > 0 ? { retryAfterSeconds: Math.min(seconds, 300) } : {}),
  });
}

/** The service could not be reached or did not answer. */
export function unreachable(
  { name, host, port }: { readonly name: string; readonly host: string; readonly port: number },
  cause: unknown,
): AppError {
  const reason = cause instanceof Error ? cause.message : 'unknown reason';
  return operatorError('SERVICE_UNREACHABLE', `${name} cannot be reached at ${host}:${port}: ${reason}`, {
    cause,
  });
}

/** The response does not match the schema: another version, or another server. */
export function unreadable(service: string, { method, path }: ServiceCall, cause: z.ZodError): AppError {
  const [issue] = cause.issues;
  const where = issue === undefined ? '' : ` (${issue.path.join('.')}: ${issue.message})`;
  return operatorError(
    'SERVICE_ANSWER_UNREADABLE',
    `${service} answered ${method} ${path.split('?')[0]} with an unexpected body${where}`,
    { cause },
  );
}

import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { isRecord, type ResourcePath, resourceName } from './resource.ts';

/** Verbs of RBAC. */
type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** Reason of a refusal, as in a Kubernetes `Status`; `Network` when there was no answer. */
type StatusReason =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Gone'
  | 'Invalid'
  | 'TooManyRequests'
  | 'Timeout'
  | 'Unavailable'
  | 'Internal'
  | 'Network';

const kinds: Readonly<Record<StatusReason, ErrorKind>> = {
  BadRequest: 'invalid',
  Unauthorized: 'unauthenticated',
  Forbidden: 'forbidden',
  NotFound: 'not_found',
  AlreadyExists: 'conflict',
  Conflict: 'conflict',
  Gone: 'gone',
  Invalid: 'unprocessable',
  TooManyRequests: 'rate_limited',
  Timeout: 'timeout',
  Unavailable: 'unavailable',
  Internal: 'bad_gateway',
  Network: 'unavailable',
};

const byStatus: Readonly<Record<number, StatusReason>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  408: 'Timeout',
  409: 'Conflict',
  410: 'Gone',
  422: 'Invalid',
  429: 'TooManyRequests',
  503: 'Unavailable',
  504: 'Timeout',
};

/** Verb and path of a request. */
export interface RequestInfo extends ResourcePath {
  readonly verb: Verb;
}

interface ApiErrorOptions {
  /** HTTP status; 0 when there was no answer. */
  readonly status?: number;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** The API server refused or did not answer. The message names verb and resource. */
export class ApiError extends AppError {
  readonly reason: StatusReason;
  readonly request: RequestInfo;
  readonly status: number;
  readonly retryAfterMs: number | undefined;

  constructor(reason: StatusReason, request: RequestInfo, message: string, options: ApiErrorOptions = {}) {
    const { retryAfterMs, cause } = options;
    super(kinds[reason], `KUBE_${reason.toUpperCase()}`, `${describeRequest(request)}: ${message}`, {
      cause,
      retryAfterSeconds: retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1000),
    });
    this.name = 'ApiError';
    this.reason = reason;
    this.request = request;
    this.status = options.status ?? 0;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `patch deployments.apps/scale acme/web`: verb and resource as RBAC names them. */
function describeRequest({ verb, resource, subresource, namespace, name }: RequestInfo): string {
  const part = subresource === undefined ? '' : `/${subresource}`;
  const object = [namespace, name].filter((each) => each !== undefined).join('/');
  return `${verb} ${resourceName(resource)}${part}${object === '' ? '' : ` ${object}`}`;
}

/** Whether a thrown value is an ApiError, with one of these reasons if any is given. */
export function isApiError(error: unknown, ...reasons: readonly StatusReason[]): error is ApiError {
  return error instanceof ApiError && (reasons.length === 0 || reasons.includes(error.reason));
}

const own = new Set<string>(['AlreadyExists', 'Invalid', 'Conflict', 'Gone', 'NotFound', 'Timeout']);

/** The reason that an HTTP status and the body of a refusal mean. */
export function statusReasonOf(status: number, body: unknown): StatusReason {
  const reason = isRecord(body) ? body['reason'] : undefined;
  if (reason === 'Expired') return 'Gone';
  if (typeof reason === 'string' && own.has(reason)) return reason as StatusReason;
  return byStatus[status] ?? (status >= 500 ? 'Internal' : 'BadRequest');
}

/** The message of a `Status` body; `HTTP <status>` when there is none. */
export function messageOf(status: number, body: unknown): string {
  const message = isRecord(body) ? body['message'] : undefined;
  return typeof message === 'string' && message !== '' ? message.slice(0, 1024) : `HTTP ${status}`;
}

/** A retry cannot succeed until the object changes. */
export class TerminalError extends AppError {
  constructor(code: string, message: string, cause?: unknown) {
    super('unprocessable', code, message, { cause });
    this.name = 'TerminalError';
  }
}

/** The write is refused because another process may hold the lease. */
export class NotLeader extends AppError {
  constructor(cause?: unknown) {
    super('unavailable', 'NOT_LEADER', 'This process does not hold the lease', { cause });
    this.name = 'NotLeader';
  }
}

/** An object of the desired name belongs to another owner. */
export class AdoptionRefused extends AppError {
  /** @param holder kind and name of the controller; undefined for an object without one */
  constructor(object: string, holder: string | undefined) {
    const owner = holder === undefined ? 'has no owner' : `belongs to ${holder}`;
    super('conflict', 'ADOPTION_REFUSED', `${object} exists and ${owner}; rename or remove it`, {
      details: { object, holder },
    });
    this.name = 'AdoptionRefused';
  }
}

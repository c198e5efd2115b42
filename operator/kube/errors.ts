import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { isRecord, type Place, resourceName } from './resource.ts';

/** Verbs as RBAC knows them. */
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** Why the API server refused, in its own words where it has one; `Network` when it could not be asked. */
export type Refusal =
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

const kinds: Readonly<Record<Refusal, ErrorKind>> = {
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

const byStatus: Readonly<Record<number, Refusal>> = {
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

/** What was asked for. */
export interface Asked extends Place {
  readonly verb: Verb;
}

export interface ApiErrorOptions {
  /** HTTP status; 0 when there was no answer. */
  readonly status?: number;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** The API server said no, or nothing at all. The message names verb and resource. */
export class ApiError extends AppError {
  readonly refusal: Refusal;
  readonly asked: Asked;
  readonly status: number;
  readonly retryAfterMs: number | undefined;

  constructor(refusal: Refusal, asked: Asked, message: string, options: ApiErrorOptions = {}) {
    const { retryAfterMs, cause } = options;
    super(kinds[refusal], `KUBE_${refusal.toUpperCase()}`, `${describeAsked(asked)}: ${message}`, {
      cause,
      retryAfterSeconds: retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1000),
    });
    this.name = 'ApiError';
    this.refusal = refusal;
    this.asked = asked;
    this.status = options.status ?? 0;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `patch deployments.apps/scale acme/web`: what RBAC must allow, and on what. */
function describeAsked({ verb, resource, subresource, namespace, name }: Asked): string {
  const part = subresource === undefined ? '' : `/${subresource}`;
  const object = [namespace, name].filter((each) => each !== undefined).join('/');
  return `${verb} ${resourceName(resource)}${part}${object === '' ? '' : ` ${object}`}`;
}

/** Whether a thrown value is a refusal of the API server, for one of these reasons when any is named. */
export function isApiError(error: unknown, ...refusals: readonly Refusal[]): error is ApiError {
  return error instanceof ApiError && (refusals.length === 0 || refusals.includes(error.refusal));
}

const own = new Set<string>(['AlreadyExists', 'Invalid', 'Conflict', 'Gone', 'NotFound', 'Timeout']);

/** The refusal that an HTTP status and a `Status` body (parsed, or whatever came) mean. */
export function refusalOf(status: number, body: unknown): Refusal {
  const reason = isRecord(body) ? body['reason'] : undefined;
  if (reason === 'Expired') return 'Gone';
  if (typeof reason === 'string' && own.has(reason)) return reason as Refusal;
  return byStatus[status] ?? (status >= 500 ? 'Internal' : 'BadRequest');
}

/** The message of a `Status` body; a line that names the HTTP status when there is none. */
export function messageOf(status: number, body: unknown): string {
  const message = isRecord(body) ? body['message'] : undefined;
  return typeof message === 'string' && message !== '' ? message.slice(0, 1024) : `HTTP ${status}`;
}

/** Nothing will help until somebody changes the object: no retry. */
export class TerminalError extends AppError {
  constructor(code: string, message: string, cause?: unknown) {
    super('unprocessable', code, message, { cause });
    this.name = 'TerminalError';
  }
}

/** A write was refused here because another process may lead by now. */
export class NotLeader extends AppError {
  constructor(cause?: unknown) {
    super('unavailable', 'NOT_LEADER', 'This process does not hold the lease', { cause });
    this.name = 'NotLeader';
  }
}

/** An object of the wanted name belongs to somebody else. */
export class AdoptionRefused extends AppError {
  constructor(object: string, holder: string) {
    super('conflict', 'ADOPTION_REFUSED', `${object} exists and belongs to ${holder}`, {
      details: { object, holder },
    });
    this.name = 'AdoptionRefused';
  }
}

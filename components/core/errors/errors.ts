/** Kind of an error. Each transport maps the kinds to its own status codes. */
export type ErrorKind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'gone'
  | 'precondition_failed'
  | 'unprocessable'
  | 'locked'
  | 'too_large'
  | 'rate_limited'
  | 'unavailable'
  | 'timeout'
  | 'bad_gateway'
  | 'not_implemented'
  | 'internal';

/** Specification document 2, section 7: severities of an error entry. */
export type Severity = 'Warning' | 'Error' | 'Critical';

/** One violation found while judging an input; `field` names the member of the input. */
export interface Violation {
  readonly code: string;
  readonly message: string;
  readonly field?: string | undefined;
  readonly severity: Severity;
}

export interface AppErrorOptions {
  readonly cause?: unknown;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly violations?: readonly Violation[] | undefined;
  /** Nothing was done, and another replica may do it: the caller may try the next one. */
  readonly elsewhere?: true | undefined;
}

const GENERIC_CODES: Readonly<Record<ErrorKind, string>> = {
  invalid: 'INVALID_REQUEST',
  unauthenticated: 'UNAUTHORIZED',
  forbidden: 'FORBIDDEN',
  not_found: 'NOT_FOUND',
  conflict: 'CONFLICT',
  gone: 'GONE',
  precondition_failed: 'PRECONDITION_FAILED',
  unprocessable: 'UNPROCESSABLE',
  locked: 'LOCKED',
  too_large: 'PAYLOAD_TOO_LARGE',
  rate_limited: 'RATE_LIMITED',
  unavailable: 'SERVICE_UNAVAILABLE',
  timeout: 'TIMEOUT',
  bad_gateway: 'BAD_GATEWAY',
  not_implemented: 'NOT_IMPLEMENTED',
  internal: 'INTERNAL_ERROR',
};

/**
 * A refusal. `kind` decides the transport status and clients match on `code`. The message is for people and never
 * contains a secret or a payload.
 */
export class AppError extends Error {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
  readonly violations?: readonly Violation[];
  readonly elsewhere?: true;

  constructor(kind: ErrorKind, code: string, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.kind = kind;
    this.code = code;
    if (options.details !== undefined) this.details = options.details;
    if (options.retryAfterSeconds !== undefined) this.retryAfterSeconds = options.retryAfterSeconds;
    if (options.violations !== undefined) this.violations = options.violations;
    if (options.elsewhere !== undefined) this.elsewhere = options.elsewhere;
  }
}

/** The generic code of a kind (specification document 1, section 7, and codes of the same form for the other kinds). */
export function genericCode(kind: ErrorKind): string {
  return GENERIC_CODES[kind];
}

/** Whether a thrown value is an AppError, and of the given kind when one is named. */
export function isAppError(error: unknown, kind?: ErrorKind): error is AppError {
  return error instanceof AppError && (kind === undefined || error.kind === kind);
}

/** A violation of severity Error. */
export function violation(code: string, message: string, field?: string): Violation {
  return field === undefined
    ? { code, message, severity: 'Error' }
    : { code, message, field, severity: 'Error' };
}

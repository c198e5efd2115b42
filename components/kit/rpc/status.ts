import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { AppError, type ErrorKind, genericCode, type Violation } from '#core/errors/errors.ts';

const DETAIL_KEY = 'chancery-error-bin';
// HTTP/2 peers limit the header list to 64 KiB; the other trailers fit beside this.
const detailLimitBytes = 16_384;
const VIOLATIONS_KEPT = 20;

const STATUS_OF_KIND: Readonly<Record<ErrorKind, status>> = {
  invalid: status.INVALID_ARGUMENT,
  unauthenticated: status.UNAUTHENTICATED,
  forbidden: status.PERMISSION_DENIED,
  not_found: status.NOT_FOUND,
  conflict: status.ABORTED,
  gone: status.FAILED_PRECONDITION,
  precondition_failed: status.FAILED_PRECONDITION,
  unprocessable: status.FAILED_PRECONDITION,
  locked: status.FAILED_PRECONDITION,
  too_large: status.RESOURCE_EXHAUSTED,
  rate_limited: status.RESOURCE_EXHAUSTED,
  unavailable: status.UNAVAILABLE,
  timeout: status.DEADLINE_EXCEEDED,
  bad_gateway: status.UNAVAILABLE,
  not_implemented: status.UNIMPLEMENTED,
  internal: status.INTERNAL,
};

/** For statuses without the detail trailer: of grpc-js itself, a proxy, another implementation. */
const KIND_OF_STATUS: Readonly<Partial<Record<status, ErrorKind>>> = {
  [status.INVALID_ARGUMENT]: 'invalid',
  [status.OUT_OF_RANGE]: 'invalid',
  [status.UNAUTHENTICATED]: 'unauthenticated',
  [status.PERMISSION_DENIED]: 'forbidden',
  [status.NOT_FOUND]: 'not_found',
  [status.ALREADY_EXISTS]: 'conflict',
  [status.ABORTED]: 'conflict',
  [status.FAILED_PRECONDITION]: 'unprocessable',
  [status.RESOURCE_EXHAUSTED]: 'too_large',
  [status.UNAVAILABLE]: 'unavailable',
  [status.CANCELLED]: 'unavailable',
  [status.DEADLINE_EXCEEDED]: 'timeout',
};

interface Detail {
  kind: ErrorKind;
  code: string;
  message: string;
  details?: Readonly<Record<string, unknown>> | undefined;
  violations?: readonly Violation[] | undefined;
  retryAfterSeconds?: number | undefined;
}

/** Status and trailers as grpc-js sends them. */
interface StatusError extends Error {
  code: status;
  details: string;
  metadata: Metadata;
}

/** Turns any thrown value into an AppError; an unknown value becomes `internal`, which hides its text. */
export function appErrorOf(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError('internal', genericCode('internal'), 'internal error', { cause: error });
}

/** The status of a failed call in a form that any transport can carry. */
export interface WireStatus {
  readonly code: status;
  readonly details: string;
  /** The whole error as JSON; undefined when the status is not of an AppError. */
  readonly detail: Buffer | undefined;
}

/** AppError to gRPC status, with the whole error as its detail. */
export function statusOf(error: AppError): WireStatus {
  const details = error.kind === 'internal' ? 'internal error' : error.message;
  return { code: STATUS_OF_KIND[error.kind], details, detail: encodeDetail(error, details) };
}

/** AppError to gRPC status; the whole error is in the trailer `chancery-error-bin` as JSON. */
export function toStatus(error: AppError): StatusError {
  const { code, details, detail } = statusOf(error);
  const metadata = new Metadata();
  if (detail !== undefined) metadata.set(DETAIL_KEY, detail);
  return Object.assign(new Error(details), { code, details, metadata });
}

function encodeDetail(error: AppError, message: string): Buffer {
  const hidden = error.kind === 'internal';
  const detail: Detail = {
    kind: error.kind,
    code: hidden ? genericCode('internal') : error.code,
    message,
    details: hidden ? undefined : error.details,
    violations: hidden ? undefined : error.violations,
    retryAfterSeconds: error.retryAfterSeconds,
  };
  const whole = Buffer.from(JSON.stringify(detail));
  if (whole.length <= detailLimitBytes) return whole;
  const fewer = { ...detail, details: undefined, violations: detail.violations?.slice(0, VIOLATIONS_KEPT) };
  const part = Buffer.from(JSON.stringify(fewer));
  if (part.length <= detailLimitBytes) return part;
  return Buffer.from(JSON.stringify({ kind: error.kind, code: error.code, message: message.slice(0, 1024) }));
}

/** gRPC status to AppError, with the detail trailer where the server sent it. */
export function fromStatus(error: ServiceError): AppError {
  const [detail] = error.metadata?.get(DETAIL_KEY) ?? [];
  return errorOf(
    {
      code: error.code,
      details: error.details || error.message,
      detail: Buffer.isBuffer(detail) ? detail : undefined,
    },
    error,
  );
}

/** A status to AppError, from its detail where there is a valid one. */
export function errorOf(received: WireStatus, cause?: unknown): AppError {
  const detail = decodeDetail(received.detail);
  if (detail !== undefined) {
    return new AppError(detail.kind, detail.code, detail.message, {
      cause,
      details: detail.details,
      violations: detail.violations,
      retryAfterSeconds: detail.retryAfterSeconds,
    });
  }
  const kind = KIND_OF_STATUS[received.code] ?? 'internal';
  return new AppError(kind, genericCode(kind), `remote call failed: ${received.details}`, { cause });
}

function decodeDetail(bytes: Buffer | undefined): Detail | undefined {
  if (bytes === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(bytes.toString('utf8'));
    return isDetail(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isDetail(value: unknown): value is Detail {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, code, message } = value as Partial<Detail>;
  return (
    typeof kind === 'string' &&
    Object.hasOwn(STATUS_OF_KIND, kind) &&
    typeof code === 'string' &&
    typeof message === 'string'
  );
}

import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { AppError, type ErrorKind, genericCode, type Violation } from '#core/errors/errors.ts';

/** HTTP status of each kind of refusal. */
export const kindStatus: Readonly<Record<ErrorKind, number>> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  gone: 410,
  precondition_failed: 412,
  too_large: 413,
  unprocessable: 422,
  locked: 423,
  rate_limited: 429,
  internal: 500,
  not_implemented: 501,
  bad_gateway: 502,
  unavailable: 503,
  timeout: 504,
};

/** The answer to an error: body of `application/problem+json` with the specification's members. */
interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly error: string;
  readonly code: string;
  readonly timestamp: string;
  readonly path: string;
  readonly traceId: string;
  /** Text by field on invalid input; the list of violations on a failed validation. */
  readonly errors?: Readonly<Record<string, readonly string[]>> | readonly Violation[];
  readonly isValid?: false;
  readonly added?: false;
  readonly [detail: string]: unknown;
}

const violationSchema = z.object({
  code: z.string(),
  message: z.string(),
  field: z.string().optional().describe('The member of the input.'),
  severity: z.enum(['Warning', 'Error', 'Critical']),
});

const payloadErrorSchema = z.object({
  path: z.string().describe('JSON Pointer into the data.'),
  message: z.string(),
  schemaLocation: z.string().describe('JSON Pointer into the action.'),
  keyword: z.string(),
});

/** Members that some refusals add. A refusal with a new member declares it here. */
const problemDetails = z.object({
  errors: z
    .union([z.record(z.string(), z.array(z.string())), z.array(violationSchema), z.array(payloadErrorSchema)])
    .describe(
      'Texts by field for invalid input; the list of violations for a failed validation; of the data of an action: ' +
        'where it differs from its schemas.',
    ),
  isValid: z.boolean().describe('Of a submitted transaction or docket: whether it is valid.'),
  added: z.boolean().describe('Of a submitted transaction: whether it is in the memory pool now.'),
  option: z.string().describe('The query option that cannot be read.'),
  position: z.int().describe('Where in the option or the JSON text, in UTF-16 units from 0.'),
  reason: z.string().describe('The code of the underlying refusal.'),
  fields: z.array(z.string()).describe('Members that cannot be changed.'),
  contexts: z.array(z.string()).describe('Derivation contexts that are unknown.'),
  subjects: z.array(z.string()).describe('Whose attestations do not verify.'),
  absent: z.array(z.string()).describe('Validators that do not answer.'),
  registerId: z.string().describe('The register that the resource is bound to.'),
  uid: z.string().describe('The resource that the register is bound to.'),
  currentVersion: z.int().describe('The version of the policy in force.'),
  height: z.int().describe('How many dockets the register has.'),
  expected: z.int().describe('The docket number that is next.'),
  bound: z.string().describe('The limit of the memory pool that is reached.'),
  wallets: z.array(z.string()).describe('Wallets to whose keys content cannot be encrypted.'),
  validationDuration: z.string().describe('hh:mm:ss.fffffff'),
  warnings: z
    .array(violationSchema)
    .describe('Of a definition with faults: what does not stop a publication.'),
  execDefHash: z.string().describe('Of a definition that needs a rehearsal: the hash of its behaviour.'),
  message: z.string().describe('Of a definition that needs a rehearsal: the same as error.'),
  waitingFor: z.array(z.int()).describe('Current actions that an action waits for.'),
  missing: z.array(z.int()).describe('Earlier actions whose data cannot be opened.'),
  calculation: z.string().describe('The calculation without a finite result.'),
  calculations: z.array(z.string()).describe('Calculations that read each other.'),
  size: z.int().describe('Bytes of the transaction.'),
  maxBytes: z.int().describe('Bytes that a transaction of the register may have.'),
});

/** Schema of the problem body for OpenAPI. Other members may follow (RFC 9457, section 3.2). */
export const problemSchema = z
  .looseObject({
    type: z.string().describe('urn:platform:error:<code>'),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    error: z.string().describe('Human text; equals detail.'),
    code: z.string().describe('What clients match on.'),
    timestamp: z.string().describe('ISO 8601, UTC.'),
    path: z.string(),
    traceId: z.string(),
    ...problemDetails.partial().shape,
  })
  .meta({ id: 'Problem' });

/** Header of an answer of status 503: nothing was done, and another replica may do it. */
export const elsewhereHeader = 'x-retry-elsewhere';

/** Path and time of an error's answer. `path` has no query string. */
interface ProblemPlace {
  readonly path: string;
  readonly traceId: string;
  readonly nowMs: number;
}

/** A refusal in HTTP terms; every thrown value becomes one before it is answered. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly fields?: Readonly<Record<string, readonly string[]>>;
  readonly violations?: readonly Violation[];
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
  /** Nothing was done, and another replica may do it. */
  readonly elsewhere?: true;
  /** The value to log; set for internal errors only. */
  readonly fault?: unknown;
}

const internalRefusal = {
  status: 500,
  code: genericCode('internal'),
  message: 'An internal error occurred.',
} as const;

/** The body of a refusal that another service gave. */
const forwardedBody = z.looseObject({ code: z.string(), error: z.string().optional() });

/** A refusal of another service that a route passes on; path, trace and time become those of this request. */
export class ForwardedRefusal extends Error {
  readonly refusal: Refusal;

  /**
   * @param answer status from 400, body with at least a `code`, and the seconds of Retry-After, 0 for none
   */
  constructor(answer: {
    readonly status: number;
    readonly body: unknown;
    readonly retryAfterSeconds?: number;
  }) {
    const { status, retryAfterSeconds = 0 } = answer;
    const { code, error = 'The request was refused.', ...details } = forwardedBody.parse(answer.body);
    super(error);
    this.name = 'ForwardedRefusal';
    this.refusal = {
      status,
      code,
      message: error,
      details,
      ...(retryAfterSeconds > 0 && { retryAfterSeconds }),
    };
  }
}

/** Turns any thrown value into a refusal. Text of internal errors and of unknown values is not sent. */
export function refusalOf(thrown: unknown): Refusal {
  if (thrown instanceof InputError || thrown instanceof ForwardedRefusal) {
    return thrown.refusal;
  }
  if (thrown instanceof AppError) {
    return refusalOfAppError(thrown);
  }
  return refusalOfFramework(thrown) ?? { ...internalRefusal, fault: thrown };
}

function refusalOfAppError(error: AppError): Refusal {
  const status = kindStatus[error.kind];
  if (error.kind === 'internal') {
    return { ...internalRefusal, fault: error };
  }
  return {
    status,
    // The specification: a validation answers with the code of its first violation.
    code: error.violations?.[0]?.code ?? error.code,
    message: error.message,
    ...(error.violations === undefined ? {} : { violations: error.violations }),
    ...(error.details === undefined ? {} : { details: error.details }),
    ...(error.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: error.retryAfterSeconds }),
    ...(error.elsewhere === undefined ? {} : { elsewhere: error.elsewhere }),
    ...(status >= 500 ? { fault: error } : {}),
  };
}

/** Errors that fastify and its body parsers throw have a status; only texts of 4xx are fit for clients. */
function refusalOfFramework(thrown: unknown): Refusal | undefined {
  if (!(thrown instanceof Error) || !('statusCode' in thrown)) {
    return undefined;
  }
  switch (thrown.statusCode) {
    case 400:
      return { status: 400, code: genericCode('invalid'), message: 'The request is malformed.' };
    case 404:
      return notFound;
    case 413:
      return { status: 413, code: genericCode('too_large'), message: 'The request body is too large.' };
    case 415:
      return { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', message: 'The content type is not supported.' };
    case 503:
      return { status: 503, code: genericCode('unavailable'), message: 'The service is stopping.' };
    default:
      return undefined;
  }
}

/** The answer to unknown paths. */
export const notFound: Refusal = {
  status: 404,
  code: genericCode('not_found'),
  message: 'The resource does not exist.',
};

/** The answer to a method that an existing path does not have. */
export function methodNotAllowed(): Refusal {
  return { status: 405, code: 'METHOD_NOT_ALLOWED', message: 'The method is not allowed here.' };
}

/** Input that does not have the declared shape. */
export class InputError extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.name = 'InputError';
    this.refusal = refusal;
  }
}

/** Malformed JSON and other faults found before the shape is validated. */
export function malformed(message: string): InputError {
  return new InputError({ status: 400, code: genericCode('invalid'), message });
}

/**
 * The refusal of zod issues. A malformed path parameter names no resource, so it is 404; everything else is 400
 * with the texts by field (`items[0].name`).
 */
export function inputError(error: z.core.$ZodError, part: string | undefined): InputError {
  if (part === 'params') {
    return new InputError(notFound);
  }
  const fields: Record<string, string[]> = {};
  for (const issue of error.issues) {
    const field = fieldName(issue.path);
    const texts = Object.hasOwn(fields, field) ? (fields[field] ?? []) : [];
    Object.defineProperty(fields, field, {
      value: [...texts, issue.message],
      enumerable: true,
      configurable: true,
    });
  }
  const [first] = Object.entries(fields);
  const message = first === undefined ? 'The input is invalid.' : `${first[0]}: ${first[1][0] ?? 'invalid'}`;
  return new InputError({ status: 400, code: genericCode('invalid'), message, fields });
}

function fieldName(path: readonly PropertyKey[]): string {
  const text = path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
  return text === '' ? 'body' : text;
}

/** Builds the body of a refusal. Details may add members but never replace the standard ones. */
export function problemOf(refusal: Refusal, place: ProblemPlace): Problem {
  return {
    ...refusal.details,
    type: `urn:platform:error:${kebab(refusal.code)}`,
    title: STATUS_CODES[refusal.status] ?? 'Error',
    status: refusal.status,
    detail: refusal.message,
    instance: place.path,
    error: refusal.message,
    code: refusal.code,
    timestamp: new Date(place.nowMs).toISOString(),
    path: place.path,
    traceId: place.traceId,
    ...(refusal.fields === undefined ? {} : { errors: refusal.fields }),
    ...(refusal.violations === undefined
      ? {}
      : { isValid: false, added: false, errors: refusal.violations.map(presentViolation) }),
  };
}

function presentViolation(violation: Violation): Violation {
  const { code, message, field, severity } = violation;
  return { code, message, ...(field === undefined ? {} : { field }), severity };
}

function kebab(code: string): string {
  return code
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .toLowerCase()
    .replaceAll(/^-|-$/g, '');
}

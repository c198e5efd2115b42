import { STATUS_CODES } from 'node:http';
import type { FastifySchema } from 'fastify';
import { type ErrorKind, genericCode } from '#core/errors/errors.ts';
import type { PolicyName } from '#core/identity/policies.ts';
import type { RateLimitPolicy } from '#kit/rate-limit/policies.ts';
import { kindStatus, problemSchema } from './problem.ts';

/** A refusal that a route may answer. Each component derives them from its table of codes (`errors.ts`). */
export interface DeclaredRefusal {
  /** What clients match on. `VAL_*` stands for every code with this beginning. */
  readonly code: string;
  readonly kind: ErrorKind;
  /** The text for people. */
  readonly message?: string;
}

/** A component's codes: kind and text of each. */
type CodeTable = Readonly<Record<string, readonly [ErrorKind, string]>>;

/** Gives the declarations of codes of a component's table, for the `refusals` of routes. */
export function createRefusals<const T extends CodeTable>(
  table: T,
): (...codes: readonly (keyof T & string)[]) => readonly DeclaredRefusal[] {
  return (...codes) =>
    codes.flatMap((code) => {
      const [kind, message] = table[code] ?? [];
      return kind === undefined ? [] : [{ code, kind, ...(message !== undefined && { message }) }];
    });
}

/** What decides which refusals a route shares with others. */
interface RefusingRoute {
  readonly policy: PolicyName;
  readonly rateLimit: RateLimitPolicy | 'none';
  /** An anonymous route judges a token that is sent. */
  readonly optionalToken?: true;
  readonly hasIdempotency: boolean;
  readonly schema: FastifySchema;
  readonly refusals: readonly DeclaredRefusal[];
}

const generic = (kind: ErrorKind, message: string): DeclaredRefusal => ({
  code: genericCode(kind),
  kind,
  message,
});

const anywhere: readonly DeclaredRefusal[] = [
  generic('internal', 'An internal error occurred.'),
  generic('unavailable', 'The service is stopping, or a service that it needs does not answer.'),
];

const ofTokens: readonly DeclaredRefusal[] = [
  generic('unauthenticated', 'A valid access token is required.'),
  { code: 'REVOCATIONS_STALE', kind: 'unavailable', message: 'Revocations cannot be read at present.' },
  {
    code: 'TOKEN_KEYS_UNAVAILABLE',
    kind: 'unavailable',
    message: 'Keys of tokens cannot be read at present.',
  },
];

const ofCallers: readonly DeclaredRefusal[] = [
  ...ofTokens,
  generic('forbidden', 'The policy of the route, or of the resource, refuses the caller.'),
  {
    code: 'PROFILE_INCOMPLETE',
    kind: 'forbidden',
    message: 'The profile of the person must be completed first.',
  },
  {
    code: 'PASSWORD_CHANGE_REQUIRED',
    kind: 'forbidden',
    message: 'The password must be replaced first; reading is allowed.',
  },
];

const ofBodies: readonly DeclaredRefusal[] = [
  generic('too_large', 'The request body is too large.'),
  { code: 'UNSUPPORTED_MEDIA_TYPE', kind: 'invalid', message: 'The content type is not supported.' },
];

const ofKeys: readonly DeclaredRefusal[] = [
  { code: 'IDEMPOTENCY_KEY_REUSED', kind: 'conflict', message: 'The key was used with another body.' },
  { code: 'IDEMPOTENCY_IN_PROGRESS', kind: 'conflict', message: 'The first request is being worked on.' },
];

/** Every refusal of a route: those of its declaration, and those that follow from its policy, limit and input. */
export function refusalsOf(route: RefusingRoute): readonly DeclaredRefusal[] {
  const { schema } = route;
  return [
    ...route.refusals,
    ...(route.policy === 'Anonymous' ? [] : ofCallers),
    ...(route.optionalToken === true ? ofCallers : []),
    ...(route.rateLimit === 'none' ? [] : [generic('rate_limited', 'Too many requests; see Retry-After.')]),
    ...(schema.params === undefined ? [] : [generic('not_found', 'The resource does not exist.')]),
    // also without input of its own: a query with a NUL is malformed everywhere
    generic('invalid', 'The input does not have the declared form.'),
    ...(schema.body === undefined ? [] : ofBodies),
    ...(route.hasIdempotency ? ofKeys : []),
    ...anywhere,
  ];
}

/** Whether a refusal is among the declared ones. */
export function isDeclared(refusals: readonly DeclaredRefusal[], code: string): boolean {
  return refusals.some((one) =>
    one.code.endsWith('*') ? code.startsWith(one.code.slice(0, -1)) : one.code === code,
  );
}

/** The refusals of statuses 4xx as `schema.response`: a problem each, described by its codes. */
export function documentedRefusals(refusals: readonly DeclaredRefusal[]): Readonly<Record<string, object>> {
  const byStatus = Map.groupBy(refusals, statusOf);
  const documented = [...byStatus]
    .filter(([status]) => status < 500)
    .map(([status, group]) => {
      const texts = [...new Map(group.map((one) => [one.code, one])).values()].map(describe);
      const description = [`${STATUS_CODES[status] ?? 'Refusal'}.`, ...texts].join('\n');
      return [status, { description, content: { 'application/problem+json': { schema: problemSchema } } }];
    });
  return Object.fromEntries(documented);
}

function statusOf({ code, kind }: DeclaredRefusal): number {
  return code === 'UNSUPPORTED_MEDIA_TYPE' ? 415 : kindStatus[kind];
}

function describe({ code, message }: DeclaredRefusal): string {
  return message === undefined ? `- \`${code}\`` : `- \`${code}\`: ${message}`;
}

import { DcqlQuery as LibraryQuery } from 'dcql';
import { z } from 'zod';
import { AppError, type Violation, violation } from '../../errors/errors.ts';

/** `__proto__` is no member name: what is keyed by ids would lose it. */
const id = z.string().regex(/^(?!__proto__$)[A-Za-z0-9_-]{1,64}$/);
const text = z.string().min(1).max(500);

/** A step of a path: a member, an element, or all elements (OpenID4VP 1.0 section 7). */
const step = z.union([z.string().min(1).max(200), z.int().min(0), z.null()]);

const claim = z.looseObject({
  id: id.optional(),
  path: z.array(step).min(1).max(16),
  values: z
    .array(z.union([z.string().max(2000), z.int(), z.boolean()]))
    .min(1)
    .max(64)
    .optional(),
  intent_to_retain: z.boolean().optional(),
});

const shared = {
  id,
  multiple: z.boolean().optional(),
  // Presentations without a proof of the holder's key are never accepted.
  require_cryptographic_holder_binding: z.literal(true).optional(),
  trusted_authorities: z
    .array(
      z.looseObject({
        // Other types cannot be judged, and what cannot be judged is not requested.
        type: z.literal('aki'),
        values: z.array(text).min(1).max(64),
      }),
    )
    .min(1)
    .max(16)
    .optional(),
  claims: z.array(claim).min(1).max(128).optional(),
  claim_sets: z.array(z.array(id).max(128)).min(1).max(16).optional(),
};

const sdJwtVcQuery = z.looseObject({
  ...shared,
  format: z.literal('dc+sd-jwt'),
  meta: z.looseObject({ vct_values: z.array(text).min(1).max(16) }),
});

const mdocQuery = z.looseObject({
  ...shared,
  format: z.literal('mso_mdoc'),
  meta: z.looseObject({ doctype_value: text }),
});

const credentialQuery = z.discriminatedUnion('format', [sdJwtVcQuery, mdocQuery]);

const dcqlQuery = z.looseObject({
  credentials: z.array(credentialQuery).min(1).max(16),
  credential_sets: z
    .array(
      z.looseObject({
        options: z.array(z.array(id).min(1).max(16)).min(1).max(32),
        required: z.boolean().optional(),
      }),
    )
    .min(1)
    .max(16)
    .optional(),
});

/** A query of the Digital Credentials Query Language (OpenID4VP 1.0 section 6), in the formats that are verified. */
export type DcqlQuery = z.infer<typeof dcqlQuery>;
export type CredentialQuery = z.infer<typeof credentialQuery>;
export type ClaimQuery = z.infer<typeof claim>;
export type ClaimPath = ClaimQuery['path'];

const pointerOf = (path: readonly PropertyKey[]): string => path.map((part) => `/${String(part)}`).join('');

function* repeated(values: readonly string[]): Generator<number> {
  for (const [index, value] of values.entries()) if (values.indexOf(value) !== index) yield index;
}

function* judgeClaimIds(
  { claims = [], claim_sets: sets }: CredentialQuery,
  at: string,
): Generator<Violation> {
  const ids = claims.flatMap((each) => each.id ?? []);
  const refuse = (message: string) => violation('DCQL_INVALID', message, at);
  for (const index of repeated(ids)) yield refuse(`Two claims have the id ${ids[index]}`);
  for (const index of repeated(claims.map(({ path }) => JSON.stringify(path)))) {
    yield refuse(`Claim ${index} is requested twice`);
  }
  if (sets === undefined) return;
  if (ids.length !== claims.length) yield refuse('Claims need ids when there are claim sets');
  for (const unknown of sets.flat().filter((each) => !ids.includes(each))) {
    yield refuse(`A claim set names ${unknown}, which is no claim`);
  }
}

function* judgeMdocPaths({ format, claims = [] }: CredentialQuery, at: string): Generator<Violation> {
  if (format !== 'mso_mdoc') return;
  for (const { path } of claims) {
    if (path.length === 2 && path.every((each) => typeof each === 'string')) continue;
    yield violation('DCQL_INVALID', 'The path of an mdoc claim is a namespace and an element', at);
  }
}

function* judgeReferences({ credentials, credential_sets: sets = [] }: DcqlQuery): Generator<Violation> {
  const ids = credentials.map((query) => query.id);
  for (const index of repeated(ids)) {
    yield violation('DCQL_INVALID', `Two queries have the id ${ids[index]}`, `/credentials/${index}`);
  }
  for (const [index, query] of credentials.entries()) {
    yield* judgeClaimIds(query, `/credentials/${index}`);
    yield* judgeMdocPaths(query, `/credentials/${index}`);
  }
  for (const [index, { options }] of sets.entries()) {
    for (const unknown of options.flat().filter((each) => !ids.includes(each))) {
      const message = `An option names ${unknown}, which is no query`;
      yield violation('DCQL_INVALID', message, `/credential_sets/${index}`);
    }
  }
}

function refuse(violations: readonly Violation[]): never {
  const [first] = violations;
  throw new AppError('invalid', 'DCQL_INVALID', first?.message ?? 'The query is not valid', { violations });
}

/**
 * Parses a DCQL query (OpenID4VP 1.0 section 6). Members that are not known are kept and mean nothing. The library
 * judges the query after these rules: it knows no `meta` that is missing, no bounds and no binding that is waived.
 * @throws AppError invalid DCQL_INVALID with violations: malformed or too large, `meta` missing or of another format, a
 * repeated id, claim or query, a set that names what does not exist, `require_cryptographic_holder_binding` false
 */
export function parseDcqlQuery(value: unknown): DcqlQuery {
  const parsed = dcqlQuery.safeParse(value);
  if (!parsed.success) {
    refuse(
      parsed.error.issues.map(({ message, path }) => violation('DCQL_INVALID', message, pointerOf(path))),
    );
  }
  const found = [...judgeReferences(parsed.data)];
  if (found.length > 0) refuse(found);
  try {
    LibraryQuery.validate(LibraryQuery.parse(JSON.parse(JSON.stringify(parsed.data))));
  } catch (cause) {
    throw new AppError('invalid', 'DCQL_INVALID', 'The query is not valid', { cause });
  }
  return parsed.data;
}

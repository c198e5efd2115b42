import { randomBytes, randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair } from 'jose';
import { z } from 'zod';
import { trustPolicy } from '#core/blueprint/model/credentials.ts';
import { type DcqlQuery, parseDcqlQuery } from '#core/credential/requests/dcql.ts';
import { buildRequirementQuery } from '#core/credential/requests/requirement.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { readableText } from '#core/encoding/readable.ts';
import { judge } from '#core/errors/judgement.ts';
import type { TrustPolicy } from '#core/trust/evaluate.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { isHighAssurance, type Profile } from '../../protocol/profile.ts';
import { createSecret } from '../../protocol/secrets.ts';
import type { Verifiers } from '../identity/identity.ts';
import { insertRequest } from './store.ts';
import { CLIENT_ID_PREFIXES, INSTALLATION_POLICY, RESPONSE_MODES, type RequestTerms } from './terms.ts';

const text = z.string();
const claimSchema = z.union([
  text.min(1).max(200),
  z.strictObject({
    claimName: text.min(1).max(200),
    expectedValue: z.unknown().refine(hasCanonicalJson, 'has no canonical JSON').optional(),
  }),
]);

/** Whether a value can be compared with claims: text that is no Unicode and deep nesting equal none. */
function hasCanonicalJson(value: unknown): boolean {
  return judge(() => canonicalJson(value)).result !== undefined;
}

const members = z.strictObject({
  credentialType: text
    .min(1)
    .max(500)
    .optional()
    .describe('`vct`, or the document type; this or declaredQuery.'),
  format: z.enum(['dc+sd-jwt', 'sd-jwt-vc', 'mso_mdoc']).default('dc+sd-jwt'),
  requiredClaims: z
    .array(claimSchema)
    .max(64)
    .optional()
    .describe('With credentialType. Names of claims, or JSON Pointers; `namespace/element` for mdoc.'),
  acceptedIssuers: z
    .array(text.min(1).max(300))
    .min(1)
    .max(64)
    .optional()
    .describe('DIDs; in place of a policy.'),
  declaredQuery: z
    .custom<JsonObject>(isJsonObject, 'expected an object')
    .optional()
    .describe('A DCQL query (OpenID4VP 1.0, section 6), sent to the wallet as it is.'),
  trustPolicy: trustPolicy.optional(),
  trustPolicies: z.record(text, trustPolicy).optional().describe('By query id.'),
  revocationCheckPolicy: z.enum(['FailClosed', 'FailOpen']).default('FailClosed'),
  purpose: readableText
    .max(300)
    .optional()
    .describe('With credentialType. Why, for the person; declaredQuery has its own.'),
  expiresInSeconds: z.int().min(60).max(900).default(300),
  responseMode: z
    .enum(RESPONSE_MODES)
    .optional()
    .describe('direct_post when absent; in haip-1.0 direct_post.jwt alone.'),
  clientIdPrefix: z
    .enum(CLIENT_ID_PREFIXES)
    .optional()
    .describe('x509_san_dns when absent; in haip-1.0 x509_hash alone.'),
  redirectUri: z
    .url()
    .regex(/^[^\0-\x20\x7f]+$/, 'has a space or a control character')
    .max(2000)
    .optional()
    .describe('Where the wallet sends the person; the result then waits for the code that comes with them.'),
});

export const requestBody = members.refine(
  ({ acceptedIssuers, trustPolicy }) => acceptedIssuers === undefined || trustPolicy === undefined,
  'needs acceptedIssuers or trustPolicy, and not both',
);

type RequestBody = z.output<typeof requestBody>;

export interface CreateRequestDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly issuerUrl: string;
  readonly profile: Profile;
  readonly verifiers: Verifiers;
}

interface Creator {
  readonly createdBy: string;
  readonly organizationId: string | undefined;
}

/**
 * Creates a request for presentations.
 * @param creator the only reader of the result, and the organisation whose audit log records issuers that are not trusted
 * @throws AppError invalid DCQL_INVALID, REDIRECT_URI_REFUSED, PROFILE_WEAKER
 */
export async function createRequest(deps: CreateRequestDeps, body: RequestBody, creator: Creator) {
  const terms = termsOf(body, deps.profile);
  if (body.redirectUri !== undefined) assertRedirect(body.redirectUri);
  const createdAt = new Date(deps.clock.nowMs());
  const request = {
    id: randomUUID(),
    ...creator,
    terms,
    nonce: createSecret(randomBytes),
    state: createSecret(randomBytes),
    clientId: deps.verifiers.current().clientId(terms.clientIdPrefix),
    decryptionKey: terms.responseMode === 'direct_post.jwt' ? await decryptionKey() : undefined,
    redirectUri: body.redirectUri,
    createdAt,
    expiresAt: new Date(createdAt.getTime() + body.expiresInSeconds * 1000),
  };
  await deps.db.transact((tx) => insertRequest(tx, request));
  const requestUri = `${deps.issuerUrl}/api/v1/verifier/requests/${request.id}/request-object`;
  const query = new URLSearchParams({ client_id: request.clientId, request_uri: requestUri });
  return {
    requestId: request.id,
    authorizationRequestUri: `${isHighAssurance(deps.profile) ? 'haip-vp' : 'openid4vp'}://?${query}`,
    requestUri,
    clientId: request.clientId,
    nonce: request.nonce,
    expiresAt: request.expiresAt.toISOString(),
    state: 'Pending' as const,
  };
}

/** An ephemeral key that one answer is encrypted to. */
async function decryptionKey(): Promise<object> {
  const { privateKey } = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
  return { ...(await exportJWK(privateKey)), kid: randomUUID(), use: 'enc', alg: 'ECDH-ES' };
}

function termsOf(body: RequestBody, profile: Profile): RequestTerms {
  const requiredClaims = (body.requiredClaims ?? []).map((claim) =>
    typeof claim === 'string' ? { claimName: claim } : claim,
  );
  const query = queryOf(body, requiredClaims);
  const ids = query.credentials.map(({ id }) => id);
  const named = new Map(Object.entries(body.trustPolicies ?? {}));
  const unknown = [...named.keys()].find((id) => !ids.includes(id));
  if (unknown !== undefined)
    throw refusal('DCQL_INVALID', { message: `trustPolicies names ${unknown}, which is no query` });
  const policyOf = (id: string): TrustPolicy =>
    named.get(id) ?? body.trustPolicy ?? issuersPolicy(body.acceptedIssuers) ?? INSTALLATION_POLICY;
  return {
    query,
    requiredClaims,
    policies: new Map(ids.map((id) => [id, policyOf(id)])),
    revocationCheck: body.revocationCheckPolicy,
    ...dialectOf(body, profile),
  };
}

/** The response mode and the prefix of the client id. @throws AppError invalid PROFILE_WEAKER */
function dialectOf({ responseMode, clientIdPrefix }: RequestBody, profile: Profile) {
  if (!isHighAssurance(profile)) {
    return {
      responseMode: responseMode ?? 'direct_post',
      clientIdPrefix: clientIdPrefix ?? 'x509_san_dns',
    } as const;
  }
  if (responseMode === 'direct_post' || clientIdPrefix === 'x509_san_dns') throw refusal('PROFILE_WEAKER');
  return { responseMode: 'direct_post.jwt', clientIdPrefix: 'x509_hash' } as const;
}

function issuersPolicy(issuers: readonly string[] | undefined): TrustPolicy | undefined {
  return issuers && { sources: [{ kind: 'did-allowlist', allowedIssuers: [...issuers] }] };
}

/** @throws AppError invalid DCQL_INVALID */
function queryOf(
  { declaredQuery, credentialType, format, purpose }: RequestBody,
  requiredClaims: RequestTerms['requiredClaims'],
): DcqlQuery {
  if ((declaredQuery === undefined) === (credentialType === undefined))
    throw refusal('DCQL_INVALID', { message: 'one of credentialType and declaredQuery is needed' });
  if (declaredQuery !== undefined) {
    // Expected values that are passed over would pass for values that were verified.
    if (requiredClaims.length > 0)
      throw refusal('DCQL_INVALID', {
        message: 'declaredQuery names its claims itself, without requiredClaims',
      });
    return parseDcqlQuery(declaredQuery);
  }
  const requirement = {
    type: credentialType ?? '',
    format: format === 'mso_mdoc' ? ('mso_mdoc' as const) : ('sd-jwt-vc' as const),
    requiredClaims: [...requiredClaims],
  };
  const { query } = buildRequirementQuery([requirement]);
  const [only] = query.credentials;
  if (only === undefined) return query;
  const credentials = [{ ...only, id: 'credential' }];
  // A purpose has its place beside a set of credentials; wallets that do not know it pass it over.
  return purpose === undefined
    ? { ...query, credentials }
    : { ...query, credentials, credential_sets: [{ options: [['credential']], required: true, purpose }] };
}

/** @throws AppError invalid REDIRECT_URI_REFUSED */
function assertRedirect(text: string): void {
  const { protocol, hostname } = URL.parse(text) ?? {};
  const isLocal = protocol === 'http:' && (hostname === 'localhost' || hostname === '127.0.0.1');
  if (protocol !== 'https:' && !isLocal) throw refusal('REDIRECT_URI_REFUSED');
}

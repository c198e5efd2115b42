import { answerClaims, selectClaims } from '#core/credential/requests/claims.ts';
import type { CredentialQuery, DcqlQuery } from '#core/credential/requests/dcql.ts';
import { type CredentialRequirement, judgeRequirement } from '#core/credential/requests/requirement.ts';
import { isSatisfied } from '#core/credential/requests/submission.ts';
import { judgeSdJwtForm } from '#core/credential/sd-jwt/verify.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { isOfAuthority } from '#core/trust/authorities.ts';
import { judgeX5c } from '#core/trust/x5c.ts';
import type { CredentialFormat } from '../../database/schema.ts';
import type { HeldCredential } from './store.ts';

/** A credential with what it says. */
export interface OpenedCredential {
  readonly credential: HeldCredential;
  /** As it was stored. */
  readonly text: string;
  readonly claims: JsonObject;
}

/** A credential that answers what is asked. */
interface Candidate {
  readonly credentialId: string;
  /** Names of the claims that an answer discloses; of an mdoc, `namespace/element`. */
  readonly disclosableClaims: readonly string[];
}

/** Credentials that meet a requirement of a workflow. Whether their issuers are trusted is judged when they are presented. */
export function candidatesOf(
  requirement: CredentialRequirement,
  held: readonly OpenedCredential[],
): readonly Candidate[] {
  const { requiredClaims = [], optionalClaims = [] } = requirement;
  const asked = [...requiredClaims, ...optionalClaims].map(({ claimName }) => claimName);
  return held
    .filter(({ credential }) => isRequired(requirement, credential))
    .filter(({ claims }) => judgeRequirement(requirement, claims).length === 0)
    .map((one) => ({
      credentialId: one.credential.id,
      disclosableClaims:
        asked.length === 0
          ? alwaysDisclosed(one)
          : asked.filter((name) => isHeld(name, one.credential.claimNames)),
    }));
}

/**
 * Names of the claims that every presentation has. A query without claims asks for no others (OpenID4VP 1.0 section
 * 6.4.1): what its issuer signed in the clear; nothing of an mdoc.
 */
function alwaysDisclosed({ credential: { format, claimNames }, text }: OpenedCredential): readonly string[] {
  if (format === 'mso_mdoc') return [];
  const { result } = judgeSdJwtForm(text);
  return claimNames.filter((name) => result !== undefined && Object.hasOwn(result.issuerJwt.payload, name));
}

/** Whether a requirement asks for credentials of the format and type. */
export function isRequired(
  { type, format = 'sd-jwt-vc' }: CredentialRequirement,
  credential: Pick<HeldCredential, 'format' | 'type'>,
): boolean {
  return credential.format === format && credential.type === type;
}

/** Whether a credential has a claim, also one below a pointer. */
function isHeld(name: string, claimNames: readonly string[]): boolean {
  const top = name.startsWith('/') ? name.slice(1).split('/', 1)[0] : name;
  return claimNames.some(
    (held) => held === name || held === top?.replaceAll('~1', '/').replaceAll('~0', '~'),
  );
}

const formats: Readonly<Record<CredentialQuery['format'], CredentialFormat>> = {
  'dc+sd-jwt': 'sd-jwt-vc',
  mso_mdoc: 'mso_mdoc',
};

function typesOf(query: CredentialQuery): readonly string[] {
  return query.format === 'mso_mdoc' ? [query.meta.doctype_value] : query.meta.vct_values;
}

function isOfType(query: CredentialQuery, { format, type }: HeldCredential): boolean {
  return format === formats[query.format] && typesOf(query).includes(type);
}

/** Whether any query asks for credentials of the format and type. */
export function isAskedBy({ credentials }: DcqlQuery, credential: HeldCredential): boolean {
  return credentials.some((query) => isOfType(query, credential));
}

/** The candidates of each query of a verifier, and whether they satisfy it (OpenID4VP 1.0 section 6.4). */
export function matchQuery(
  query: DcqlQuery,
  held: readonly OpenedCredential[],
): {
  readonly matches: readonly { readonly queryId: string; readonly candidates: readonly Candidate[] }[];
  readonly isSatisfiable: boolean;
  readonly unsatisfied: readonly string[];
} {
  const matches = query.credentials.map((each) => ({
    queryId: each.id,
    candidates: held.flatMap((one) => candidateOf(each, one)),
  }));
  const answered = new Set(
    matches.filter(({ candidates }) => candidates.length > 0).map(({ queryId }) => queryId),
  );
  return {
    matches,
    isSatisfiable: isSatisfied(query, answered),
    unsatisfied: query.credentials.map(({ id }) => id).filter((id) => !answered.has(id)),
  };
}

function candidateOf(query: CredentialQuery, opened: OpenedCredential): readonly Candidate[] {
  const { credential, claims } = opened;
  if (!isOfType(query, credential) || !isOfNamedAuthority(query, credential)) return [];
  if (query.claims === undefined)
    return [{ credentialId: credential.id, disclosableClaims: alwaysDisclosed(opened) }];
  const disclosableClaims = satisfiedClaims(query, claims);
  if (disclosableClaims === undefined) return [];
  return [{ credentialId: credential.id, disclosableClaims }];
}

function isOfNamedAuthority(
  { trusted_authorities: authorities }: CredentialQuery,
  { issuerClaim }: HeldCredential,
): boolean {
  if (authorities === undefined) return true;
  const x5c = issuerClaim.certificates.map((der) => Buffer.from(der).toString('base64'));
  const path = judgeX5c(x5c).result ?? [];
  return isOfAuthority(
    path,
    authorities.flatMap(({ values }) => values),
  );
}

/** The claims that an answer discloses: those of the first claim set that is met. Undefined when none is. */
function satisfiedClaims(query: CredentialQuery, claims: JsonObject): readonly string[] | undefined {
  const { requested, violations } = answerClaims(query, claims);
  return violations.length === 0 ? namesOf(query, requested, claims) : undefined;
}

/** Names of requested claims: of an mdoc `namespace/element`, else one name, or a JSON Pointer below it. */
function namesOf(
  { format }: CredentialQuery,
  requested: Readonly<NonNullable<CredentialQuery['claims']>>,
  claims: JsonObject,
): readonly string[] {
  return requested
    .filter(({ path }) => selectClaims(claims, path).length > 0)
    .map(({ path }) => {
      const steps = path.map(String);
      if (format === 'mso_mdoc' || steps.length === 1) return steps.join('/');
      return steps.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
    });
}

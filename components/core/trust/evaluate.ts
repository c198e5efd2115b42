import type { z } from 'zod';
import type { credentialRequirement } from '../blueprint/model/credentials.ts';
import { type SignatureKey, spkiOfKey } from '../crypto/signature-key.ts';
import { equalBytes } from '../encoding/text.ts';
import type { Certificate } from './certificate.ts';
import { EXTENSION } from './extensions.ts';
import { type RequiredPurpose, validatePath } from './path.ts';

type CredentialRequirement = z.infer<typeof credentialRequirement>;

/** Which sources may vouch for an issuer, and how they combine. */
export type TrustPolicy = NonNullable<CredentialRequirement['trustPolicy']>;
export type TrustSource = TrustPolicy['sources'][number];
type AssuranceLevel = NonNullable<TrustPolicy['minAssuranceLevel']>;
type RevocationCheckPolicy = NonNullable<CredentialRequirement['revocationCheckPolicy']>;

/** Why a source does not vouch, or a policy is not met. */
type TrustReason =
  | 'TRUST_NO_SOURCE'
  | 'TRUST_CHAIN_INVALID'
  | 'TRUST_CERT_EXPIRED'
  | 'TRUST_CERT_REVOKED'
  | 'TRUST_CRL_UNAVAILABLE'
  | 'TRUSTLIST_UNAVAILABLE'
  | 'TRUSTLIST_STALE'
  | 'TRUST_ISSUER_NOT_LISTED'
  | 'TRUST_ASSURANCE_TOO_LOW';

/** What lists of revoked certificates say of a certificate. */
export type RevocationVerdict = 'Good' | 'Revoked' | 'Unavailable';

/** How the key was found that verified the credential. */
export type KeyOrigin =
  /** The certificates of `x5c` or `x5chain`, leaf first; the key of the leaf is the one that verified. */
  | { readonly kind: 'x5c'; readonly path: readonly Certificate[] }
  /** A verification method of the DID document of `did`, which is the issuer that the credential names. */
  | { readonly kind: 'did'; readonly did: string; readonly key: SignatureKey };

/** A DID that was resolved on a register, or as an organisation's document. */
export interface ResolvedDid {
  /**
   * The DID, and those of its `alsoKnownAs` whose own documents name the DID in turn: an alias that only one side claims
   * would let an issuer speak in the name of another one.
   */
  readonly identifiers: readonly string[];
  /** Keys of `assertionMethod`. */
  readonly assertionKeys: readonly SignatureKey[];
}

/** A trust list as it was last imported. */
export interface TrustListSnapshot {
  readonly sequenceNumber: number;
  readonly anchors: readonly Certificate[];
  readonly issuedAtMs: number;
  readonly nextUpdateMs: number | undefined;
}

/** Everything that a decision needs and that is fetched or stored elsewhere. */
export interface TrustFacts {
  readonly origin: KeyOrigin;
  /** Undefined when the DID could not be resolved. */
  readonly resolvedDid: ResolvedDid | undefined;
  /** Roots of the tenants that the verifier trusts. */
  readonly tenantAnchors: readonly Certificate[];
  /** By id. */
  readonly trustLists: ReadonlyMap<string, TrustListSnapshot>;
  /** By the thumbprint of a certificate. */
  readonly revocation: ReadonlyMap<string, RevocationVerdict>;
}

/** Rules that do not depend on the credential. */
export interface TrustRules {
  readonly revocationCheck: RevocationCheckPolicy;
  /** Whether a trust list behind its next update vouches no longer. */
  readonly isStrictAboutFreshness: boolean;
  /** Required of the leaf, for mdoc. */
  readonly purpose?: RequiredPurpose | undefined;
  /** Time of the decision, in milliseconds since the epoch. */
  readonly atMs: number;
}

/** What one source says. */
interface TrustEvidence {
  readonly kind: TrustSource['kind'];
  readonly vouched: boolean;
  readonly reason?: TrustReason | undefined;
  /** SHA-256 of the anchor, lower-case hexadecimal. */
  readonly anchorThumbprint?: string | undefined;
  /** `{trustListId}#{sequenceNumber}` */
  readonly trustListId?: string | undefined;
  readonly freshness: 'Fresh' | 'Stale';
  /** Milliseconds since the epoch. */
  readonly evaluatedAtMs: number;
}

/** The decision about an issuer. */
export interface TrustDecision {
  readonly isTrusted: boolean;
  /** Why not. */
  readonly reason: TrustReason | undefined;
  readonly assuranceLevel: AssuranceLevel | undefined;
  readonly evidence: readonly TrustEvidence[];
}

/** The policy of a requirement that names none: members of the register, at the lowest level. */
export const DEFAULT_TRUST_POLICY: TrustPolicy = { sources: [{ kind: 'register' }] };

const LEVELS: readonly AssuranceLevel[] = ['Low', 'Substantial', 'High'];
const dayMs = 86_400_000;
/** A trust list without a next update is stale from this age on. */
const unspecifiedUpdateMs = 90 * dayMs;

type Finding = Omit<TrustEvidence, 'kind' | 'evaluatedAtMs'>;

const refusal = (reason: TrustReason, also: Partial<Finding> = {}): Finding => ({
  vouched: false,
  reason,
  freshness: 'Fresh',
  ...also,
});

/**
 * Judges revocation of the certificates of a path. A certificate that names no list can be revoked only in the tenant's
 * own list.
 */
function judgeRevocation(
  path: readonly Certificate[],
  { revocation }: TrustFacts,
  isTenant: boolean,
): RevocationVerdict {
  const verdicts = path.map((certificate): RevocationVerdict => {
    const known = revocation.get(certificate.thumbprint);
    if (known !== undefined) return known;
    const hasList = isTenant || certificate.extensions.has(EXTENSION.crlDistributionPoints);
    return hasList ? 'Unavailable' : 'Good';
  });
  if (verdicts.includes('Revoked')) return 'Revoked';
  return verdicts.includes('Unavailable') ? 'Unavailable' : 'Good';
}

interface AnchorSet {
  readonly anchors: readonly Certificate[];
  readonly isTenant: boolean;
  readonly also: Partial<Finding>;
}

function judgeCertificates(
  facts: TrustFacts,
  rules: TrustRules,
  { anchors, isTenant, also }: AnchorSet,
): Finding {
  const { origin } = facts;
  if (origin.kind !== 'x5c') return refusal('TRUST_CHAIN_INVALID', also);
  const { path } = origin;
  const { violations, result } = validatePath({ path, anchors, atMs: rules.atMs, purpose: rules.purpose });
  if (result === undefined) {
    const [{ code }] = violations;
    if (code === 'TRUST_CERT_EXPIRED') return refusal(code, also);
    const isUnlisted = code === 'TRUST_ISSUER_NOT_LISTED' && !isTenant;
    return refusal(isUnlisted ? code : 'TRUST_CHAIN_INVALID', also);
  }
  const anchored = { ...also, anchorThumbprint: result.anchor.thumbprint };
  const revocation = judgeRevocation(path, facts, isTenant);
  if (revocation === 'Revoked') return refusal('TRUST_CERT_REVOKED', anchored);
  if (revocation === 'Good') return { vouched: true, freshness: 'Fresh', ...anchored };
  const reason = 'TRUST_CRL_UNAVAILABLE';
  return { freshness: 'Fresh', ...anchored, vouched: rules.revocationCheck === 'FailOpen', reason };
}

function judgeTrustList(facts: TrustFacts, rules: TrustRules, { trustListId }: TrustSource): Finding {
  const list = trustListId === undefined ? undefined : facts.trustLists.get(trustListId);
  if (list === undefined) return refusal('TRUSTLIST_UNAVAILABLE');
  const staleAtMs = list.nextUpdateMs ?? list.issuedAtMs + unspecifiedUpdateMs;
  const freshness = rules.atMs > staleAtMs ? 'Stale' : 'Fresh';
  const also = { trustListId: `${trustListId}#${list.sequenceNumber}`, freshness } as const;
  if (freshness === 'Stale' && rules.isStrictAboutFreshness) return refusal('TRUSTLIST_STALE', also);
  return judgeCertificates(facts, rules, { anchors: list.anchors, isTenant: false, also });
}

/** A DID vouches for its keys alone: the issuer's name beside a certificate proves nothing. */
function judgeDid(
  { origin, resolvedDid }: TrustFacts,
  isListed: (identifiers: readonly string[]) => boolean,
): Finding {
  if (origin.kind !== 'did') return refusal('TRUST_ISSUER_NOT_LISTED');
  if (resolvedDid === undefined) return refusal('TRUST_NO_SOURCE');
  const { identifiers, assertionKeys } = resolvedDid;
  const spki = spkiOfKey(origin.key);
  const isBound =
    identifiers.includes(origin.did) && assertionKeys.some((key) => equalBytes(spkiOfKey(key), spki));
  return isBound && isListed(identifiers)
    ? { vouched: true, freshness: 'Fresh' }
    : refusal('TRUST_ISSUER_NOT_LISTED');
}

function judgeSource(source: TrustSource, facts: TrustFacts, rules: TrustRules): TrustEvidence {
  const judgeKind = (): Finding => {
    switch (source.kind) {
      case 'register':
        return judgeDid(facts, () => true);
      case 'did-allowlist':
        // The DID itself is listed: `alsoKnownAs` is the issuer's own claim.
        return judgeDid(
          facts,
          () => facts.origin.kind === 'did' && (source.allowedIssuers ?? []).includes(facts.origin.did),
        );
      case 'x509-tenant':
        return judgeCertificates(facts, rules, { anchors: facts.tenantAnchors, isTenant: true, also: {} });
      case 'trustlist':
        return judgeTrustList(facts, rules, source);
    }
  };
  return { kind: source.kind, ...judgeKind(), evaluatedAtMs: rules.atMs };
}

function levelOf(levels: readonly AssuranceLevel[], pick: 'highest' | 'lowest'): AssuranceLevel | undefined {
  const ranks = levels.map((level) => LEVELS.indexOf(level));
  return LEVELS[pick === 'highest' ? Math.max(...ranks) : Math.min(...ranks)];
}

/** The one reason of sources that do not vouch; TRUST_NO_SOURCE when they have several. */
function reasonOf(evidence: readonly TrustEvidence[]): TrustReason {
  const reasons = new Set(evidence.filter(({ vouched }) => !vouched).map(({ reason }) => reason));
  const [only] = reasons;
  return reasons.size === 1 && only !== undefined ? only : 'TRUST_NO_SOURCE';
}

/**
 * Decides whether the issuer of a verified credential is trusted. With `anyOf` (the default) one source must vouch and the
 * highest level of those that do counts; with `allOf` all must vouch and the lowest counts. A source confers `Low` unless
 * it says otherwise. A level below the policy's is TRUST_ASSURANCE_TOO_LOW.
 */
export function decideTrust(policy: TrustPolicy, facts: TrustFacts, rules: TrustRules): TrustDecision {
  const { sources, combinator = 'anyOf', minAssuranceLevel = 'Low' } = policy;
  const evidence = sources.map((source) => judgeSource(source, facts, rules));
  const vouching = sources.filter((_, at) => evidence[at]?.vouched === true);
  const isMet = combinator === 'allOf' ? vouching.length === sources.length : vouching.length > 0;
  if (!isMet || vouching.length === 0) {
    return { isTrusted: false, reason: reasonOf(evidence), assuranceLevel: undefined, evidence };
  }
  const levels = vouching.map(({ confersAssurance = 'Low' }) => confersAssurance);
  const assuranceLevel = levelOf(levels, combinator === 'allOf' ? 'lowest' : 'highest');
  const isEnough =
    assuranceLevel !== undefined && LEVELS.indexOf(assuranceLevel) >= LEVELS.indexOf(minAssuranceLevel);
  return {
    isTrusted: isEnough,
    reason: isEnough ? undefined : 'TRUST_ASSURANCE_TOO_LOW',
    assuranceLevel,
    evidence,
  };
}

import { DOCUMENT_SIGNER } from '#core/credential/mdoc/verify.ts';
import type { StatusReference } from '#core/credential/status-list/reference.ts';
import { spkiOfKey } from '#core/crypto/signature-key.ts';
import { decideTrust, type TrustDecision, type TrustPolicy } from '#core/trust/evaluate.ts';
import type { Clock } from '#kit/clock/clock.ts';
import {
  type FoundIssuer,
  findCertifiedIssuer,
  findIssuer,
  gatherFacts,
} from '../verifier/presentations/issuer.ts';
import type { StatusReader } from '../verifier/presentations/status.ts';
import type { StatusResult } from '../verifier/presentations/verdict.ts';
import type { RevocationLists } from '../verifier/trust-sources/revocation-lists.ts';
import type { ListedIssuer, TrustSources } from '../verifier/trust-sources/trust-sources.ts';

export interface JudgeIssuerDeps {
  readonly clock: Clock;
  readonly sources: TrustSources;
  readonly revocations: Pick<RevocationLists, 'verdictOf'>;
  readonly statuses: StatusReader;
}

/** What a credential says of its issuer. */
interface IssuerClaim {
  /** DER, the leaf first; empty when `keyId` names the key. */
  readonly certificates: readonly Uint8Array[];
  /** A DID URL; empty when there are certificates. */
  readonly keyId: string;
  /** Whether the certificate must be that of a document signer. */
  readonly isDocument: boolean;
  readonly status: StatusReference | undefined;
}

interface IssuerJudgement {
  /** SubjectPublicKeyInfo; empty when no key was found. */
  readonly publicKey: Uint8Array;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly isTrusted: boolean;
  /** Why not; empty for an issuer that is trusted. */
  readonly reason: string;
  /** Undefined when the issuer is not trusted: it names no address that is asked. */
  readonly status: StatusResult | undefined;
}

/**
 * The key of an issuer, whether any source of this installation vouches for the issuer, and the status of one of its
 * credentials.
 * @throws AppError unavailable CERTIFICATES_UNAVAILABLE, WALLETS_UNAVAILABLE
 */
export async function judgeIssuer(deps: JudgeIssuerDeps, claim: IssuerClaim): Promise<IssuerJudgement> {
  const issuer = await issuerOf(deps, claim);
  if ('code' in issuer) {
    const nothing = { publicKey: new Uint8Array(), notBeforeMs: 0, notAfterMs: 0, status: undefined };
    return { ...nothing, isTrusted: false, reason: issuer.code };
  }
  const { isTrusted, reason } = await trustOf(deps, issuer, claim.isDocument);
  const [leaf] = issuer.origin.kind === 'x5c' ? issuer.origin.path : [];
  return {
    publicKey: spkiOfKey(issuer.key),
    notBeforeMs: leaf?.notBeforeMs ?? 0,
    notAfterMs: leaf?.notAfterMs ?? 0,
    isTrusted,
    reason: reason ?? '',
    status: isTrusted ? await deps.statuses.read(claim.status, issuer.origin) : undefined,
  };
}

function issuerOf({ sources }: JudgeIssuerDeps, { certificates, keyId }: IssuerClaim) {
  if (certificates.length === 0) return findIssuer({ kid: keyId }, sources);
  return findCertifiedIssuer(certificates.map((der) => Buffer.from(der).toString('base64')));
}

/** Any source may vouch: organisations of this installation, by certificate or DID, and every imported list. */
async function trustOf(
  { clock, sources, revocations }: JudgeIssuerDeps,
  issuer: FoundIssuer,
  isDocument: boolean,
): Promise<TrustDecision> {
  const last = issuer.origin.kind === 'x5c' ? issuer.origin.path.at(-1) : undefined;
  const listed = last === undefined ? [] : await sources.findListedIssuers(last);
  const policy: TrustPolicy = {
    sources: [
      { kind: 'x509-tenant' },
      { kind: 'register' },
      ...listed.map(({ trustListId }) => ({ kind: 'trustlist' as const, trustListId })),
    ],
  };
  const byId = new Map(listed.map((list) => [list.trustListId, listOf(list)]));
  const known = { ...sources, findTrustList: async (id: string) => byId.get(id) };
  const atMs = clock.nowMs();
  const { facts } = await gatherFacts(policy, issuer, { sources: known, revocations, atMs });
  return decideTrust(policy, facts, {
    revocationCheck: 'FailClosed',
    isStrictAboutFreshness: false,
    purpose: isDocument ? DOCUMENT_SIGNER : undefined,
    atMs,
  });
}

/** Stale lists that vouch for nothing have no anchors here. */
function listOf({ sequenceNumber, anchors }: ListedIssuer) {
  const snapshot = { sequenceNumber, anchors, issuedAtMs: 0, nextUpdateMs: Number.MAX_SAFE_INTEGER };
  return { snapshot, isStrict: false };
}

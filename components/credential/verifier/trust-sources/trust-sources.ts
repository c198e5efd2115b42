import type { SignatureKey } from '#core/crypto/signature-key.ts';
import type { Certificate } from '#core/trust/certificate.ts';
import type { RevocationVerdict, TrustListSnapshot } from '#core/trust/evaluate.ts';

/** An authority of an organisation of this installation, and what its list says of a certificate. */
interface TenantAnchor {
  readonly anchor: Certificate;
  readonly verdict: RevocationVerdict;
}

/** A trust list as it was imported last. */
export interface AnchorList {
  readonly snapshot: TrustListSnapshot;
  /** Whether lists behind their next update vouch no longer. */
  readonly isStrict: boolean;
}

/** Anchors of an active trust list that have the name of an issuer. */
export interface ListedIssuer {
  readonly trustListId: string;
  readonly sequenceNumber: number;
  /** None when the list is stale and such lists vouch for nothing. */
  readonly anchors: readonly Certificate[];
}

/** What is known about issuers elsewhere. */
export interface TrustSources {
  /** The authority that issued a certificate; undefined when it is none of this installation. Errors: unavailable. */
  findTenantAnchor(certificate: Certificate): Promise<TenantAnchor | undefined>;
  /** Undefined for a list that does not exist. Errors: unavailable. */
  findTrustList(trustListId: string): Promise<AnchorList | undefined>;
  /** The lists with anchors that a certificate names as its issuer; which of them signed it is not judged. Errors: unavailable. */
  findListedIssuers(certificate: Certificate): Promise<readonly ListedIssuer[]>;
  /** The key of an organisation by the address of its wallet; undefined when it has none. Errors: unavailable. */
  findOrganizationKey(walletAddress: string): Promise<SignatureKey | undefined>;
}

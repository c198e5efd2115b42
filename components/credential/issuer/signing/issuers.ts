/** How verifiers find the key of an issuer (specification document 3, section 2). */
export const TRUST_ANCHORS = ['register', 'x509-tenant', 'x509-lotl'] as const;
export type TrustAnchor = (typeof TRUST_ANCHORS)[number];

/** An issuer: an organisation by its wallet, and how verifiers come to trust it. */
export interface Issuer {
  readonly organizationId: string;
  readonly walletAddress: string;
  readonly trustAnchor: TrustAnchor;
}

/** Certificates and keys of issuing organisations; private keys stay in the wallet service. */
export interface Issuers {
  /**
   * The certificates of an issuer in DER, leaf first, without the anchor; empty where the register is the anchor. For
   * statuses, a certificate that was retired will do where none is in use.
   * @throws AppError unprocessable ISSUER_WALLET_MISMATCH, CERT_NOT_ENROLLED, CERT_EXTERNAL_ANCHOR_UNAVAILABLE,
   * unavailable CERTIFICATES_UNAVAILABLE, WALLETS_UNAVAILABLE
   */
  chainOf(issuer: Issuer, use: 'Credentials' | 'Statuses'): Promise<readonly Uint8Array[]>;
  /**
   * Signs a SHA-256 digest with the key that the certificates name; r and s, 32 bytes each.
   * @throws AppError unprocessable CERT_KEY_NOT_ELIGIBLE, locked WALLET_LOCKED, unavailable WALLETS_UNAVAILABLE
   */
  sign(walletAddress: string, digest: Uint8Array): Promise<Uint8Array>;
}

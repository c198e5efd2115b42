import type { Generated } from 'kysely';

/** The certificate of the authority of an organisation, and its revocation list. */
export interface OrganizationRootTable {
  id: string;
  organization_id: string;
  /** The wallet whose key for tenant authorities signs. */
  wallet_address: string;
  /** DER. */
  certificate: Buffer;
  /** Of the key of the authority (RFC 7638). */
  key_thumbprint: string;
  not_after: Date;
  created_at: Date;
  superseded_at: Date | null;
  /** Rises with each revocation. */
  revision: Generated<number>;
  /** The last number that a revocation list took, whether it was signed or not. */
  crl_number: Generated<number>;
  /** DER of the newest signed list; its number, and the revision that it shows. */
  crl: Buffer | null;
  crl_signed_number: number | null;
  crl_revision: number | null;
  crl_this_update: Date | null;
  crl_next_update: Date | null;
}

/** A certificate of the key of an organisation, by its own authority or by another one. */
export interface OrganizationCertificateTable {
  id: string;
  organization_id: string;
  wallet_address: string;
  provenance: string;
  status: string;
  /** DER, the leaf first; no self-signed certificate. */
  chain: Buffer[];
  /** DER of the self-signed certificate that the chain ends below, where it is known. */
  anchor: Buffer | null;
  /** Of an internal certificate. */
  root_id: string | null;
  serial_number: string;
  not_before: Date;
  not_after: Date;
  /** When the first certificate of the chain, the anchor included, expires. */
  usable_until: Date;
  key_source: string;
  /** Of the key of the leaf (RFC 7638). */
  key_thumbprint: string;
  created_at: Date;
  revoked_at: Date | null;
  revocation_reason: string | null;
}

/** An organisation whose first wallet waits for its certificate. */
export interface RequestedEnrolmentTable {
  organization_id: string;
  wallet_address: string;
  tries: Generated<number>;
  next_try_at: Date;
}

import type { ColumnType, Generated, GeneratedAlways } from 'kysely';
import type { AuthorizationTables } from './authorization-tables.ts';
import type { VerifierTables } from './verifier-tables.ts';

type Json<T> = ColumnType<T, string, string>;

/** What wallets can be offered; one row for each type in a format. */
interface ConfigurationTable {
  id: string;
  format: 'dc+sd-jwt' | 'mso_mdoc';
  /** `vct`, or the document type. */
  credential_type: string;
  display_name: string;
  /** Names of claims of the top level; of an mdoc, JSON Pointers of namespace and element. */
  claims: Json<readonly string[]>;
  created_at: Date;
  /** Of the newest offer, or up to an hour before it. */
  offered_at: Date;
}

interface OfferTable {
  id: string;
  /** SHA-256 of the pre-authorized code. */
  code_hash: Buffer;
  /** SHA-256 of the reference in the address of the offer. */
  reference_hash: Buffer;
  /** The code, sealed under the reference. */
  sealed_code: Buffer | null;
  /** The claims, sealed under the code; null once the offer has ended. */
  sealed_claims: Buffer | null;
  organization_id: string;
  wallet_address: string;
  configuration_id: string;
  trust_anchor: 'register' | 'x509-tenant' | 'x509-lotl';
  disclosable: Json<readonly string[]> | null;
  validity_seconds: number | null;
  /** HMAC of the transaction code under the pre-authorized code. */
  tx_code_hash: Buffer | null;
  tx_code_form: Json<TxCodeForm> | null;
  tx_code_tries: Generated<number>;
  holder_thumbprint: string | null;
  /** where changes of the status are recorded too */
  register_id: string | null;
  has_status: boolean;
  status: 'Pending' | 'Exchanged' | 'Expired';
  reason: string | null;
  created_by: string;
  created_at: Date;
  expires_at: Date;
  exchanged_at: Date | null;
  issued_at: Date | null;
}

/** What a person must type besides scanning the offer (OpenID4VCI 1.0, section 4.1.1). */
export interface TxCodeForm {
  readonly inputMode: 'numeric' | 'text';
  readonly length: number;
  readonly description?: string | undefined;
}

interface AccessTokenTable {
  /** SHA-256 of the token. */
  token_hash: Buffer;
  offer_id: string;
  /** The claims, sealed under the token. */
  sealed_claims: Buffer;
  /** Thumbprint of the key that the token is bound to (RFC 9449). */
  dpop_thumbprint: string | null;
  issued: Generated<number>;
  expires_at: Date;
}

/** Nonces and proofs that were used; kept until they would have expired. */
interface UsedValueTable {
  value_hash: Buffer;
  expires_at: Date;
}

/** Changes of statuses that their register does not have yet. */
interface UnrecordedChangeTable {
  id: GeneratedAlways<string>;
  credential_id: string;
  register_id: string;
  organization_id: string;
  wallet_address: string;
  payload: string;
  /** JSON of a signed transaction. */
  transaction: ColumnType<unknown, string | null, string | null>;
  tries: Generated<number>;
  next_try_at: Date;
}

interface StatusListTable {
  id: string;
  organization_id: string;
  wallet_address: string;
  trust_anchor: 'register' | 'x509-tenant' | 'x509-lotl';
  size: number;
  allocated: Generated<number>;
  statuses: Buffer;
  version: Generated<number>;
  signed_token: string | null;
  signed_version: number | null;
  signed_at: Date | null;
}

interface CredentialTable {
  id: string;
  offer_id: string;
  organization_id: string;
  wallet_address: string;
  configuration_id: string;
  holder_thumbprint: string;
  status: 'Active' | 'Suspended' | 'Revoked';
  list_id: string | null;
  list_index: number | null;
  reason: string | null;
  issued_at: Date;
  expires_at: Date | null;
  changed_at: Date | null;
}

interface SecretTable {
  name: string;
  value: Buffer;
}

/** Events for the audit log that the tenant service does not have yet. */
interface UnreportedEventTable {
  id: GeneratedAlways<string>;
  organization_id: string;
  kind: 'issued' | 'statusChanged' | 'notTrusted';
  resource_id: string;
  detail: string;
  platform_user_id: string | null;
  occurred_at: Date;
}

export interface CredentialDatabase extends VerifierTables, AuthorizationTables {
  configurations: ConfigurationTable;
  offers: OfferTable;
  access_tokens: AccessTokenTable;
  used_values: UsedValueTable;
  status_lists: StatusListTable;
  unrecorded_changes: UnrecordedChangeTable;
  credentials: CredentialTable;
  secrets: SecretTable;
  unreported_events: UnreportedEventTable;
}

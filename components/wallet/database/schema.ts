import type { ColumnType, Generated } from 'kysely';

export type WalletKind = 'User' | 'Organization' | 'System' | 'Service' | 'Derived';
export type WalletStatus = 'Active' | 'Locked' | 'Deleted';
/** State of the key of a Derived wallet: a rotated key only decrypts, a revoked one does nothing. */
export type KeyStatus = 'Active' | 'Rotated' | 'Revoked';
export type KeyUsage = 'Identity' | 'VCIssuance' | 'Governance' | 'Communications' | 'ServiceAuth';
export type KeyType = 'ED25519' | 'NISTP256' | 'RSA';
export type AccessRight = 'ReadOnly' | 'ReadWrite' | 'Owner';

type WriteOnce<T> = ColumnType<T, T, never>;

export interface WalletTable {
  id: WriteOnce<string>;
  address: WriteOnce<string>;
  kind: WriteOnce<WalletKind>;
  /** platform user of a User or Derived wallet */
  owner_user_id: WriteOnce<string | null>;
  /** organisation of an Organization or Derived wallet */
  owner_organization_id: WriteOnce<string | null>;
  /** role of a System wallet: `register-control` or the name of a validator */
  system_identity: WriteOnce<string | null>;
  /** client id of the service that owns a Service wallet, and the name that it gave the wallet */
  owner_service: WriteOnce<string | null>;
  service_name: WriteOnce<string | null>;
  title: string;
  description: string | null;
  key_type: WriteOnce<KeyType>;
  /** slot of the key of `address` and `public_key`: 0, or that of the context of a System wallet */
  slot: WriteOnce<number>;
  public_key: WriteOnce<Buffer>;
  /** X25519 (32 bytes) or P-256 SPKI of slot 110; null for RSA, whose only key also decrypts */
  encryption_key: WriteOnce<Buffer | null>;
  status: WalletStatus;
  /** state of the key of a Derived wallet */
  key_status: KeyStatus | null;
  /** when the wallet was locked last; null while it is Active */
  locked_at: Date | null;
  /** when a new master key took the place of this Organization wallet */
  replaced_at: Date | null;
  created_by: WriteOnce<string>;
  created_at: WriteOnce<Date>;
}

/** The derivation of a Derived wallet; `id` is that of the wallet. */
export interface DerivedKeyTable {
  id: WriteOnce<string>;
  /** the Organization wallet whose seed it was derived from */
  master_id: WriteOnce<string>;
  organization_id: WriteOnce<string>;
  user_id: WriteOnce<string>;
  department_id: WriteOnce<number>;
  usage: WriteOnce<KeyUsage>;
  key_index: WriteOnce<number>;
  derivation_path: WriteOnce<string>;
  created_at: WriteOnce<Date>;
  rotated_at: Date | null;
  revoked_at: Date | null;
}

/** Changes of keys and states of wallets with the person that made them; append-only. */
interface WalletAuditTable {
  id: Generated<number>;
  at: Date;
  platform_user_id: string;
  organization_id: string | null;
  act: string;
  wallet_id: string;
  wallet_address: string;
}

interface WalletSecretTable {
  wallet_id: WriteOnce<string>;
  purpose: WriteOnce<'seed' | 'pkcs8' | 'node'>;
  kek_id: string;
  wrapped_key: Buffer;
  sealed: Buffer;
}

export interface WalletGrantTable {
  id: WriteOnce<string>;
  wallet_id: WriteOnce<string>;
  subject: WriteOnce<string>;
  access_right: WriteOnce<AccessRight>;
  reason: WriteOnce<string | null>;
  granted_by: WriteOnce<string>;
  granted_at: WriteOnce<Date>;
  expires_at: WriteOnce<Date | null>;
  allowed_contexts: WriteOnce<string[]>;
  /** set once: by revocation, or when a new grant replaces an expired one */
  ended_at: Date | null;
}

interface SigningAuditTable {
  id: Generated<number>;
  at: Generated<Date>;
  caller: string;
  caller_subject: string;
  register_id: string;
  transaction_type: string;
  transaction_id: string;
  derivation_path: string;
  decision: 'Signed' | 'Refused';
  reason: string | null;
}

/** Times of the signatures of the last window, oldest first: an exact sliding window in one row. */
interface SigningBucketTable {
  register_id: string;
  derivation_path: string;
  recent: Date[];
}

/** The last consensus message that a validator signed on a register; prevents double signing. */
interface SigningGuardTable {
  register_id: string;
  validator_id: string;
  height: string;
  round: number;
  step: number;
  digest: Buffer;
  signature: Buffer;
  /** lowest step that the commit of the row took, read by its statement alone; null in rows of versions without batches */
  first_step: number | null;
  /** the earlier messages of the batch (system-signer/kept-messages.ts); null when there are none */
  earlier: Buffer | null;
}

interface SignerEpochTable {
  validator_id: string;
  epoch: string;
  opened_at: Date;
}

/** The notice that a person waits for a credential: one a person, judged by the clock of the database. */
interface ApplicationNoticeTable {
  platform_user_id: string;
  label: string;
  set_at: Date;
  expires_at: Date;
}

export const PRESENTATION_OUTCOMES = [
  'Presented',
  'DeclinedByCitizen',
  'VerifierRejected',
  'Acknowledged',
] as const;

interface PresentationTable {
  platform_user_id: WriteOnce<string>;
  id: WriteOnce<string>;
  credential_id: string;
  verifier_label: string | null;
  verifier_did: string | null;
  /** names only, never values */
  disclosed_claims: string[];
  presented_at: Date;
  outcome: (typeof PRESENTATION_OUTCOMES)[number];
  /** of the first report */
  reported_at: WriteOnce<Date>;
}

export const CREDENTIAL_FORMATS = ['sd-jwt-vc', 'mso_mdoc'] as const;
export type CredentialFormat = (typeof CREDENTIAL_FORMATS)[number];

/** Status by the list of the issuer; a credential expires by itself. */
export type ListedStatus = 'Active' | 'Suspended' | 'Revoked';

export interface HeldCredentialTable {
  id: WriteOnce<string>;
  wallet_id: WriteOnce<string>;
  /** SHA-256 of the credential as it was stored */
  digest: WriteOnce<Buffer>;
  format: WriteOnce<CredentialFormat>;
  /** `vct`, or the type of the document */
  type: WriteOnce<string>;
  issuer: WriteOnce<string | null>;
  /** DER, the leaf first; empty when `issuer_key_id` names the key */
  issuer_certificates: WriteOnce<Buffer[]>;
  issuer_key_id: WriteOnce<string>;
  trusted: boolean;
  trust_reason: string | null;
  status: ListedStatus;
  status_uri: WriteOnce<string | null>;
  status_index: WriteOnce<string | null>;
  status_checked_at: Date;
  /** whether the wallet itself has the key that the credential is bound to */
  bound_to_holder_key: WriteOnce<boolean>;
  claim_names: WriteOnce<string[]>;
  /** the credential with its claims, under the data key of the wallet */
  sealed: WriteOnce<Buffer>;
  issued_at: WriteOnce<Date | null>;
  expires_at: WriteOnce<Date | null>;
  stored_at: WriteOnce<Date>;
}

export interface WalletDatabase {
  wallets: WalletTable;
  wallet_secrets: WalletSecretTable;
  wallet_grants: WalletGrantTable;
  derived_keys: DerivedKeyTable;
  wallet_audit: WalletAuditTable;
  signing_audit: SigningAuditTable;
  signing_buckets: SigningBucketTable;
  signing_guard: SigningGuardTable;
  signer_epochs: SignerEpochTable;
  application_notices: ApplicationNoticeTable;
  presentations: PresentationTable;
  held_credentials: HeldCredentialTable;
}

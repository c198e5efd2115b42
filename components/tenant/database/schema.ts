import type { ColumnType, Generated } from 'kysely';
import type { TrustListTables } from './trust-list-tables.ts';
import type {
  OrganizationCertificateTable,
  OrganizationRootTable,
  RequestedEnrolmentTable,
} from './trust-tables.ts';

/** A column that PostgreSQL fills and the application never writes. */
type Assigned<T> = ColumnType<T, never, never>;
type Json<T> = ColumnType<T, string, string>;

export interface Branding {
  readonly primaryColor?: string | undefined;
  readonly secondaryColor?: string | undefined;
  readonly companyTagline?: string | undefined;
  readonly logoUrl?: string | undefined;
}

/** The public part of a signing key (RFC 7517). */
export interface PublicJwk {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  readonly x: string;
  readonly y: string;
  /** Thumbprint of RFC 7638. */
  readonly kid: string;
  readonly alg: 'ES256';
  readonly use: 'sig';
}

export interface OrganizationTable {
  id: string;
  name: string;
  subdomain: string;
  status: string;
  org_type: string;
  is_platform_org: boolean;
  self_registration_enabled: boolean;
  audit_retention_months: Generated<number>;
  branding: Json<Branding>;
  creator_identity_id: string | null;
  created_at: Date;
  deleted_at: Date | null;
  resource_uid: string | null;
  version: Generated<number>;
  purged_at: Date | null;
}

export interface PlatformUserTable {
  id: string;
  /** Absent for an account that signed up with a passkey alone. */
  email: string | null;
  display_name: string;
  password_hash: string | null;
  password_changed_at: Date | null;
  /** The password was given by others, and its owner has to replace it. */
  password_change_required: Generated<boolean>;
  email_verified: boolean;
  email_verified_at: Generated<Date | null>;
  /** A new address whose verification waits. */
  pending_email: Generated<string | null>;
  created_orgs_count: Generated<number>;
  status: string;
  default_organization_id: string | null;
  /**
   * The organisation that created the account; while the address is not verified, the account gives access to no other.
   */
  home_organization_id: string | null;
  created_at: Date;
  last_login_at: Date | null;
}

/** Failed sign-ins of a subject: an account, or the addresses without an account that share a record. */
export interface GuessTable {
  subject: string;
  failures: number;
  is_closed: boolean;
  unreported: boolean;
  paced_until: Date | null;
  touched_at: Date;
}

/** Failed sign-ins of a subject by network, and the time of the last sign-in from there. */
export interface GuessNetworkTable {
  subject: string;
  network: string;
  failures: number;
  locked_until: Date | null;
  locked_permanently: boolean;
  unreported: boolean;
  last_failure_at: Date | null;
  last_sign_in_at: Date | null;
  paced_until: Date | null;
}

export interface UserIdentityTable {
  id: string;
  organization_id: string;
  platform_user_id: string;
  email: string | null;
  display_name: string;
  roles: string[];
  status: string;
  provisioned_via: string;
  created_at: Date;
  last_login_at: Date | null;
  /** The identity provider of the organisation that signs this person in, and its subject. */
  external_issuer: Generated<string | null>;
  external_subject: Generated<string | null>;
  profile_completed: Generated<boolean>;
}

export interface RefreshFamilyTable {
  id: string;
  generation: number;
  last_rotated_at: Date;
  platform_user_id: string;
  identity_id: string;
  organization_id: string;
  tier: string;
  amr: string[];
  auth_time: Date;
  basic_proof_at: Date | null;
  strong_proof_at: Date | null;
  created_at: Date;
  expires_at: Date;
  revoked_at: Date | null;
  revoke_reason: string | null;
}

export interface ServicePrincipalTable {
  id: string;
  client_id: string;
  service_name: string;
  secret_hash: Buffer | null;
  scopes: string[];
  can_sign_system: boolean;
  status: string;
  created_at: Date;
  secret_rotated_at: Date | null;
}

interface SigningKeyTable {
  kid: string;
  state: string;
  public_jwk: Json<PublicJwk>;
  sealed_private_key: Buffer;
  created_at: Date;
  activated_at: Date | null;
  retired_at: Date | null;
}

interface RevocationTable {
  transaction_id: Assigned<string>;
  sequence: Assigned<string>;
  kind: string;
  key: string;
  not_before_ms: string | number;
  expires_at_ms: string | number;
}

interface AuditEventTable {
  id: Assigned<string>;
  organization_id: string;
  occurred_at: Date;
  event_type: string;
  identity_id: string | null;
  platform_user_id: string | null;
  ip_address: string | null;
  user_agent: string | null;
  success: boolean;
  details: Json<Record<string, unknown>>;
  /** Events with the same key are stored as one event: refusals with a count, events of other services by their id. */
  refusal_key: Buffer | null;
}

export interface PlatformSettingsTable {
  id: number;
  public_org_enabled: boolean;
  max_orgs_per_user: number;
  updated_at: Date;
}

/** The position of this service in the event log of another service. */
interface EventCursorTable {
  source: string;
  position: string;
}

/** Wallets of people according to the events of the wallet service. */
interface UserWalletTable {
  wallet_id: string;
  platform_user_id: string;
  address: string;
  is_active: boolean;
  created_at: Date;
}

export interface InboxEntryTable {
  id: string;
  platform_user_id: string;
  source_event_id: string;
  category: string;
  severity: string;
  correlation_key: string;
  title: string;
  summary: string | null;
  icon_key: string | null;
  detail_href: string | null;
  channel_hints: string[];
  writer_service_id: string;
  occurred_at: Date;
  read_at: Date | null;
  dismissed_at: Date | null;
}

/** A secret that acts once; the row stays for a day after its expiry, so that used and expired differ. */
export interface OneTimeSecretTable {
  /** Of the token; of random bytes for a code, which is found by its subject. */
  hash: Buffer;
  purpose: string;
  /** What the secret is for, for example an account. */
  subject: string;
  sealed: Buffer;
  attempts: Generated<number>;
  max_attempts: number;
  created_at: Date;
  expires_at: Date;
  consumed_at: Date | null;
}

/** A mail or text message that is not sent yet. */
interface MessageTable {
  id: string;
  sealed: Buffer;
  attempts: Generated<number>;
  due_at: Date;
  created_at: Date;
}

/** Second factors of a person; secrets and numbers are sealed. */
export interface SecondFactorTable {
  platform_user_id: string;
  totp_secret: Buffer | null;
  totp_verified_at: Date | null;
  /** Step of the last code that was accepted (RFC 6238, 5.2). */
  totp_last_step: string | number | null;
  pending_totp_secret: Buffer | null;
  pending_totp_at: Date | null;
  email_otp_enabled: Generated<boolean>;
  sms_otp_enabled: Generated<boolean>;
  phone: Buffer | null;
  phone_verified_at: Date | null;
  pending_phone: Buffer | null;
  updated_at: Date;
}

interface BackupCodeTable {
  platform_user_id: string;
  hash: Buffer;
  /** The set-up is not verified yet. */
  is_pending: boolean;
  used_at: Date | null;
}

export interface PasskeyTable {
  id: string;
  credential_id: Buffer;
  /** COSE_Key (RFC 9052). */
  public_key: Buffer;
  counter: string | number;
  platform_user_id: string;
  display_name: string;
  device_type: string;
  transports: string[];
  backup_eligible: boolean;
  backup_state: boolean;
  attestation_type: string;
  aaguid: string;
  status: string;
  disabled_reason: string | null;
  disabled_at: Date | null;
  created_at: Date;
  last_used_at: Date | null;
}

/** An account of a social provider that signs a person in. */
interface SocialLinkTable {
  id: string;
  platform_user_id: string;
  provider: string;
  subject: string;
  email: string | null;
  display_name: string | null;
  linked_at: Date;
  last_used_at: Date | null;
}

/** The identity provider of an organisation. */
interface IdpConfigurationTable {
  id: string;
  organization_id: string;
  provider_preset: string;
  display_name: string;
  issuer_url: string;
  client_id: string;
  client_secret: Buffer | null;
  scopes: string[];
  is_enabled: boolean;
  /** The discovery document (OpenID Connect Discovery 1.0, section 3). */
  discovered: Json<Readonly<Record<string, unknown>>> | null;
  discovery_fetched_at: Date | null;
  discovery_error: string | null;
  last_login_at: Date | null;
  created_at: Date;
  updated_at: Date;
}

export interface TenantDatabase extends TrustListTables {
  one_time_secrets: OneTimeSecretTable;
  messages: MessageTable;
  second_factors: SecondFactorTable;
  backup_codes: BackupCodeTable;
  passkeys: PasskeyTable;
  social_links: SocialLinkTable;
  idp_configurations: IdpConfigurationTable;
  organizations: OrganizationTable;
  platform_users: PlatformUserTable;
  user_identities: UserIdentityTable;
  account_guesses: GuessTable;
  account_networks: GuessNetworkTable;
  unknown_guesses: GuessTable;
  unknown_networks: GuessNetworkTable;
  refresh_families: RefreshFamilyTable;
  service_principals: ServicePrincipalTable;
  signing_keys: SigningKeyTable;
  revocations: RevocationTable;
  audit_events: AuditEventTable;
  platform_settings: PlatformSettingsTable;
  event_cursors: EventCursorTable;
  user_wallets: UserWalletTable;
  inbox_entries: InboxEntryTable;
  organization_roots: OrganizationRootTable;
  organization_certificates: OrganizationCertificateTable;
  requested_enrolments: RequestedEnrolmentTable;
}

import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

const refreshFamilies = `
CREATE TABLE refresh_families (
  id uuid PRIMARY KEY,
  generation integer NOT NULL,
  last_rotated_at timestamptz NOT NULL,
  platform_user_id uuid NOT NULL REFERENCES platform_users (id) ON DELETE CASCADE,
  identity_id uuid NOT NULL REFERENCES user_identities (id) ON DELETE CASCADE,
  organization_id uuid NOT NULL REFERENCES organizations (id),
  tier text NOT NULL CHECK (tier IN ('platform', 'consumer')),
  amr text[] NOT NULL,
  auth_time timestamptz NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  revoke_reason text
)`;

const principals = `
CREATE TABLE service_principals (
  id uuid PRIMARY KEY,
  client_id text NOT NULL UNIQUE,
  service_name text NOT NULL,
  secret_hash bytea,
  scopes text[] NOT NULL,
  can_sign_system boolean NOT NULL DEFAULT false,
  status text NOT NULL CHECK (status IN ('Active', 'Suspended', 'Revoked')),
  created_at timestamptz NOT NULL,
  secret_rotated_at timestamptz
)`;

const signingKeys = `
CREATE TABLE signing_keys (
  kid text PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('next', 'current', 'retired')),
  public_jwk jsonb NOT NULL,
  sealed_private_key bytea NOT NULL,
  created_at timestamptz NOT NULL,
  activated_at timestamptz,
  retired_at timestamptz
)`;

// Readers page by (transaction_id, sequence) below pg_snapshot_xmin, so that a late commit is never skipped.
const revocations = `
CREATE TABLE revocations (
  transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
  sequence bigint GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL CHECK (kind IN ('token', 'family', 'identity', 'platform_user', 'organization')),
  key text NOT NULL,
  not_before_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (transaction_id, sequence)
)`;

const auditEvents = `
CREATE TABLE audit_events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  organization_id uuid NOT NULL,
  occurred_at timestamptz NOT NULL,
  event_type text NOT NULL,
  identity_id uuid,
  platform_user_id uuid,
  ip_address text,
  user_agent text,
  success boolean NOT NULL,
  details jsonb NOT NULL
)`;

const idempotencyKeys = `
CREATE TABLE idempotency_keys (
  key_hash bytea PRIMARY KEY,
  body_hash bytea NOT NULL,
  answer text,
  created_at timestamptz NOT NULL
)`;

const statements = [
  refreshFamilies,
  'CREATE INDEX refresh_families_by_identity ON refresh_families (identity_id) WHERE revoked_at IS NULL',
  'CREATE INDEX refresh_families_by_org ON refresh_families (organization_id) WHERE revoked_at IS NULL',
  'CREATE INDEX refresh_families_by_expiry ON refresh_families (expires_at)',
  principals,
  signingKeys,
  "CREATE UNIQUE INDEX signing_keys_one_current ON signing_keys (state) WHERE state = 'current'",
  "CREATE UNIQUE INDEX signing_keys_one_next ON signing_keys (state) WHERE state = 'next'",
  revocations,
  'CREATE INDEX revocations_by_expiry ON revocations (expires_at_ms)',
  auditEvents,
  'CREATE INDEX audit_events_listing ON audit_events (organization_id, occurred_at DESC, id DESC)',
  idempotencyKeys,
];

export const credentials: Migration = {
  name: '0002-credentials',
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

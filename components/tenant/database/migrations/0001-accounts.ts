import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

const organizations = `
CREATE TABLE organizations (
  id uuid PRIMARY KEY,
  name text NOT NULL CHECK (char_length(name) BETWEEN 3 AND 100),
  subdomain text NOT NULL UNIQUE,
  status text NOT NULL CHECK (status IN ('Active', 'Suspended')),
  org_type text NOT NULL CHECK (org_type IN ('Standard', 'Public')),
  is_platform_org boolean NOT NULL DEFAULT false,
  self_registration_enabled boolean NOT NULL DEFAULT false,
  audit_retention_months integer NOT NULL DEFAULT 12 CHECK (audit_retention_months BETWEEN 1 AND 120),
  branding jsonb NOT NULL DEFAULT '{}',
  creator_identity_id uuid,
  created_at timestamptz NOT NULL,
  deleted_at timestamptz
)`;

const platformUsers = `
CREATE TABLE platform_users (
  id uuid PRIMARY KEY,
  email text NOT NULL UNIQUE CHECK (email = lower(email)),
  display_name text NOT NULL,
  password_hash text,
  password_changed_at timestamptz,
  email_verified boolean NOT NULL DEFAULT false,
  failed_login_count integer NOT NULL DEFAULT 0,
  locked_until timestamptz,
  locked_permanently boolean NOT NULL DEFAULT false,
  created_orgs_count integer NOT NULL DEFAULT 0,
  status text NOT NULL CHECK (status IN ('Active', 'Suspended', 'Deleted')),
  default_organization_id uuid REFERENCES organizations (id),
  created_at timestamptz NOT NULL,
  last_login_at timestamptz
)`;

const userIdentities = `
CREATE TABLE user_identities (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations (id),
  platform_user_id uuid NOT NULL REFERENCES platform_users (id) ON DELETE CASCADE,
  email text NOT NULL,
  display_name text NOT NULL,
  roles text[] NOT NULL,
  status text NOT NULL CHECK (status IN ('Active', 'Suspended', 'Deleted')),
  provisioned_via text NOT NULL,
  created_at timestamptz NOT NULL,
  last_login_at timestamptz,
  UNIQUE (organization_id, platform_user_id)
)`;

const settings = `
CREATE TABLE platform_settings (
  id integer PRIMARY KEY CHECK (id = 1),
  public_org_enabled boolean NOT NULL,
  max_orgs_per_user integer NOT NULL CHECK (max_orgs_per_user BETWEEN 1 AND 100),
  updated_at timestamptz NOT NULL
)`;

const statements = [
  organizations,
  platformUsers,
  userIdentities,
  'CREATE INDEX user_identities_by_user ON user_identities (platform_user_id)',
  'CREATE INDEX user_identities_listing ON user_identities (organization_id, created_at, id)',
  settings,
];

export const accounts: Migration = {
  name: '0001-accounts',
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

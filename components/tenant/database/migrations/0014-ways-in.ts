import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

/**
 * Means of signing in beside the password, single-use secrets, and messages that wait to be sent. An account that signs
 * up with a passkey has no address.
 */
export const waysIn: Migration = {
  name: '0014-ways-in',
  async up(db) {
    await createSecrets(db);
    await alterAccounts(db);
    await createFactors(db);
    await createFederation(db);
  },
};

type Db = Parameters<Migration['up']>[0];

async function createSecrets(db: Db): Promise<void> {
  await sql`create table one_time_secrets (
    hash bytea primary key,
    purpose text not null,
    subject text not null,
    sealed bytea not null,
    attempts integer not null default 0,
    max_attempts integer not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    consumed_at timestamptz)`.execute(db);
  await sql`create index one_time_secrets_subject on one_time_secrets (purpose, subject, created_at desc)`.execute(
    db,
  );
  await sql`create index one_time_secrets_expiry on one_time_secrets (expires_at)`.execute(db);
  await sql`create table messages (
    id uuid primary key,
    sealed bytea not null,
    attempts integer not null default 0,
    due_at timestamptz not null,
    created_at timestamptz not null)`.execute(db);
  await sql`create index messages_due on messages (due_at)`.execute(db);
}

async function alterAccounts(db: Db): Promise<void> {
  await sql`alter table platform_users
    alter column email drop not null,
    add column email_verified_at timestamptz,
    add column pending_email text`.execute(db);
  await sql`update platform_users set email_verified_at = created_at where email_verified`.execute(db);
  await sql`alter table user_identities
    alter column email drop not null,
    add column external_issuer text,
    add column external_subject text,
    add column profile_completed boolean not null default true`.execute(db);
  await sql`create unique index user_identities_external
    on user_identities (organization_id, external_issuer, external_subject)`.execute(db);
}

async function createFactors(db: Db): Promise<void> {
  await sql`create table second_factors (
    platform_user_id uuid primary key references platform_users (id) on delete cascade,
    totp_secret bytea,
    totp_verified_at timestamptz,
    totp_last_step bigint,
    pending_totp_secret bytea,
    pending_totp_at timestamptz,
    email_otp_enabled boolean not null default false,
    sms_otp_enabled boolean not null default false,
    phone bytea,
    phone_verified_at timestamptz,
    pending_phone bytea,
    updated_at timestamptz not null)`.execute(db);
  await sql`create table backup_codes (
    platform_user_id uuid not null references platform_users (id) on delete cascade,
    hash bytea not null,
    is_pending boolean not null,
    used_at timestamptz,
    primary key (platform_user_id, hash))`.execute(db);
  await sql`create table passkeys (
    id uuid primary key,
    credential_id bytea not null unique,
    public_key bytea not null,
    counter bigint not null,
    platform_user_id uuid not null references platform_users (id) on delete cascade,
    display_name text not null,
    device_type text not null,
    transports text[] not null,
    backup_eligible boolean not null,
    backup_state boolean not null,
    attestation_type text not null,
    aaguid text not null,
    status text not null,
    disabled_reason text,
    disabled_at timestamptz,
    created_at timestamptz not null,
    last_used_at timestamptz)`.execute(db);
  await sql`create index passkeys_owner on passkeys (platform_user_id)`.execute(db);
}

async function createFederation(db: Db): Promise<void> {
  await sql`create table social_links (
    id uuid primary key,
    platform_user_id uuid not null references platform_users (id) on delete cascade,
    provider text not null,
    subject text not null,
    email text,
    display_name text,
    linked_at timestamptz not null,
    last_used_at timestamptz,
    unique (provider, subject))`.execute(db);
  await sql`create index social_links_owner on social_links (platform_user_id)`.execute(db);
  await sql`create table idp_configurations (
    id uuid primary key,
    organization_id uuid not null unique references organizations (id) on delete cascade,
    provider_preset text not null,
    display_name text not null,
    issuer_url text not null,
    client_id text not null,
    client_secret bytea,
    scopes text[] not null,
    is_enabled boolean not null,
    discovered jsonb,
    discovery_fetched_at timestamptz,
    discovery_error text,
    last_login_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null)`.execute(db);
}

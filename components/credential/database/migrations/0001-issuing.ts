import { type Kysely, sql } from 'kysely';

const statements = [
  sql`create table secrets (
    name text primary key,
    value bytea not null
  )`,
  sql`create table configurations (
    id text primary key,
    format text not null check (format in ('dc+sd-jwt', 'mso_mdoc')),
    credential_type text not null,
    display_name text not null,
    claims jsonb not null,
    created_at timestamptz not null,
    unique (format, credential_type)
  )`,
  sql`create table offers (
    id uuid primary key,
    code_hash bytea not null unique check (octet_length(code_hash) = 32),
    reference_hash bytea not null unique check (octet_length(reference_hash) = 32),
    sealed_code bytea,
    sealed_claims bytea,
    organization_id uuid not null,
    wallet_address text not null,
    configuration_id text not null references configurations,
    trust_anchor text not null check (trust_anchor in ('register', 'x509-tenant', 'x509-lotl')),
    disclosable jsonb,
    validity_seconds integer check (validity_seconds > 0),
    tx_code_hash bytea,
    tx_code_form jsonb,
    tx_code_tries smallint not null default 0,
    holder_thumbprint text,
    has_status boolean not null,
    status text not null check (status in ('Pending', 'Exchanged', 'Expired')),
    reason text,
    created_by text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    exchanged_at timestamptz,
    issued_at timestamptz,
    check ((tx_code_hash is null) = (tx_code_form is null)),
    -- Personal data does not outlive the offer.
    check (status = 'Pending' or (sealed_code is null and sealed_claims is null))
  )`,
  sql`create index offers_pending on offers (expires_at) where status = 'Pending'`,
  sql`create table access_tokens (
    token_hash bytea primary key check (octet_length(token_hash) = 32),
    offer_id uuid not null references offers,
    sealed_claims bytea not null,
    dpop_thumbprint text,
    issued smallint not null default 0,
    expires_at timestamptz not null
  )`,
  sql`create index access_tokens_expired on access_tokens (expires_at)`,
  sql`create table used_values (
    value_hash bytea primary key check (octet_length(value_hash) = 32),
    expires_at timestamptz not null
  )`,
  sql`create index used_values_expired on used_values (expires_at)`,
];

export const issuing = {
  name: '0001-issuing',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

import { type Kysely, sql } from 'kysely';

const statements = [
  sql`create table pushed_requests (
    request_hash bytea primary key check (octet_length(request_hash) = 32),
    offer_id uuid not null references offers,
    client_id text not null,
    redirect_uri text not null,
    code_challenge text not null,
    state text,
    sealed bytea not null,
    expires_at timestamptz not null
  )`,
  sql`create index pushed_requests_expired on pushed_requests (expires_at)`,
  sql`create table authorization_codes (
    code_hash bytea primary key check (octet_length(code_hash) = 32),
    offer_id uuid not null references offers,
    client_id text not null,
    redirect_uri text not null,
    code_challenge text not null,
    sealed_claims bytea not null,
    expires_at timestamptz not null
  )`,
  sql`create index authorization_codes_expired on authorization_codes (expires_at)`,
  sql`create table refresh_tokens (
    token_hash bytea primary key check (octet_length(token_hash) = 32),
    offer_id uuid not null references offers,
    client_id text not null,
    dpop_thumbprint text not null,
    sealed_claims bytea,
    expires_at timestamptz not null
  )`,
  sql`create index refresh_tokens_expired on refresh_tokens (expires_at)`,
  sql`create index refresh_tokens_offer on refresh_tokens (offer_id)`,
];

export const authorization = {
  name: '0004-authorization',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

import { type Kysely, sql } from 'kysely';

const statements = [
  sql`create table presentation_requests (
    id uuid primary key,
    created_by text not null,
    status text not null check (status in ('Pending', 'Verified', 'Failed', 'Expired')),
    terms jsonb not null,
    nonce text not null,
    state text not null,
    client_id text not null,
    decryption_key jsonb,
    redirect_uri text,
    response_code_hash bytea,
    verdict jsonb,
    claims jsonb,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    answered_at timestamptz,
    check ((status in ('Verified', 'Failed')) = (verdict is not null)),
    check (status = 'Pending' or decryption_key is null)
  )`,
  sql`create index presentation_requests_pending on presentation_requests (expires_at) where status = 'Pending'`,
  sql`create index presentation_requests_claims on presentation_requests (answered_at) where claims is not null`,
];

export const verifying = {
  name: '0003-verifying',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

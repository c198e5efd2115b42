import { type Kysely, sql } from 'kysely';

const statements = [
  sql`create table file_uploads (
    upload_id uuid primary key,
    register_id text not null check (register_id ~ '^[0-9a-f]{32}$'),
    sender_wallet text not null,
    -- Whose quota the bytes count for.
    quota_owner text not null,
    total_chunks smallint not null check (total_chunks between 1 and 10),
    file_size integer not null check (file_size between 0 and 41943040),
    -- Of what the sender declared: name, type, size and hash of the file, which are kept in no other form.
    declared bytea not null check (octet_length(declared) = 32),
    created_at timestamptz not null,
    -- Null while an operation claims the upload.
    expires_at timestamptz,
    purged_at timestamptz
  )`,
  sql`create index file_uploads_expired on file_uploads (expires_at) where purged_at is null`,
  sql`create index file_uploads_purged on file_uploads (purged_at) where purged_at is not null`,
  sql`create table file_chunks (
    upload_id uuid not null references file_uploads on delete cascade,
    chunk_index smallint not null check (chunk_index between 0 and 9),
    chunk_id text not null unique check (chunk_id ~ '^[0-9a-f]{64}$'),
    -- A nonce of 24 bytes, up to 4 MiB of ciphertext, a tag of 16 bytes.
    size integer not null check (size between 40 and 4194344),
    -- Null once it was purged.
    encrypted_data bytea check (octet_length(encrypted_data) = size),
    created_at timestamptz not null,
    primary key (upload_id, chunk_index)
  )`,
  // Ciphertext cannot be compressed.
  sql`alter table file_chunks alter column encrypted_data set storage external`,
  sql`create table file_claims (
    upload_id uuid not null references file_uploads,
    -- Operations are deleted after some days; what they sealed stays.
    operation_id uuid not null,
    -- In the order of the payload.
    position smallint not null,
    primary key (upload_id, operation_id)
  )`,
  sql`create index file_claims_operation on file_claims (operation_id)`,
  sql`create table file_usage (
    quota_owner text primary key,
    stored_bytes bigint not null check (stored_bytes >= 0)
  )`,
];

export const files = {
  name: '0006-files',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

/** Versions of trust lists with the documents that they were read from, and their anchors. */
export const trustLists: Migration = {
  name: '0017-trust-lists',
  async up(db) {
    await sql`create table trust_list_snapshots (
      trust_list_id text not null,
      sequence_number bigint not null check (sequence_number > 0),
      status text not null check (status in ('Active', 'Superseded')),
      format text not null check (format in ('xml', 'jws')),
      scheme_territory text,
      scheme_operator_name text not null,
      list_issue_at timestamptz not null,
      next_update_at timestamptz,
      signer_subject text not null,
      signer_thumbprint text not null,
      imported_at timestamptz not null,
      source_url text,
      document bytea not null,
      document_sha256 text not null,
      root_count integer not null,
      extracted integer not null,
      skipped jsonb not null,
      primary key (trust_list_id, sequence_number))`.execute(db);
    await sql`create unique index trust_list_snapshots_active
      on trust_list_snapshots (trust_list_id) where status = 'Active'`.execute(db);
    await sql`create table trust_list_anchors (
      trust_list_id text not null,
      sequence_number bigint not null,
      position integer not null,
      thumbprint text not null,
      der bytea not null,
      subject_dn text not null,
      service_type text not null,
      service_status text,
      not_before timestamptz not null,
      not_after timestamptz not null,
      primary key (trust_list_id, sequence_number, position),
      unique (trust_list_id, sequence_number, thumbprint),
      foreign key (trust_list_id, sequence_number)
        references trust_list_snapshots (trust_list_id, sequence_number) on delete cascade)`.execute(db);
  },
};

import { type Kysely, sql } from 'kysely';

const statements = [
  // A deleted draft keeps its row; its id is free again.
  sql`create table drafts (
    draft_no bigint generated always as identity primary key,
    organization_id uuid not null,
    id text not null,
    blueprint_id text not null,
    title text not null,
    description text not null,
    participant_count integer not null,
    action_count integer not null,
    definition text not null,
    exec_def_hash text not null,
    revision integer not null,
    source jsonb,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz
  )`,
  sql`create unique index drafts_id on drafts (organization_id, id) where deleted_at is null`,
  sql`create index drafts_by_id on drafts (id) where deleted_at is null`,
  sql`create index drafts_blueprint on drafts (organization_id, blueprint_id)`,
  sql`create index drafts_age on drafts (organization_id, created_at desc, draft_no desc) where deleted_at is null`,
  // What the ledger says; it can be read from there again.
  sql`create table publications (
    register_id text not null,
    publication_tx_id text not null,
    blueprint_id text not null,
    ordinal integer not null,
    exec_def_hash text not null,
    structural_hash text not null,
    published_by text not null,
    published_at text not null,
    docket_number bigint not null,
    position integer not null,
    definition text not null,
    primary key (register_id, publication_tx_id)
  )`,
  sql`create unique index publications_ordinal on publications (register_id, blueprint_id, ordinal)`,
  sql`create index publications_blueprint on publications (blueprint_id, docket_number)`,
  sql`create table publication_cursors (
    register_id text primary key,
    docket_number bigint not null,
    position integer not null
  )`,
  sql`create table rehearsal_passes (
    id uuid primary key,
    organization_id uuid not null,
    blueprint_id text not null,
    exec_def_hash text not null,
    rehearsal_id text not null,
    passed_at timestamptz not null,
    passed_by text not null
  )`,
  sql`create index rehearsal_passes_hash on rehearsal_passes (organization_id, blueprint_id, exec_def_hash)`,
  // Publications that this service was asked for, with the account that asked; the ledger names the publisher's DID alone.
  sql`create table submitted_publications (
    register_id text not null,
    publication_tx_id text not null,
    blueprint_id text not null,
    organization_id uuid not null,
    published_at timestamptz not null,
    primary key (register_id, publication_tx_id)
  )`,
  sql`create index submitted_publications_blueprint on submitted_publications (organization_id, blueprint_id)`,
  sql`create table publish_overrides (
    id uuid primary key,
    organization_id uuid not null,
    blueprint_id text not null,
    register_id text not null,
    exec_def_hash text not null,
    publication_tx_id text not null,
    overridden_by_platform_user_id text not null,
    overridden_at timestamptz not null,
    reason text
  )`,
  sql`create index publish_overrides_publication on publish_overrides (register_id, publication_tx_id)`,
  sql`create function refuse_change() returns trigger language plpgsql as
    $$ begin raise exception 'rows of % are never changed', tg_table_name; end $$`,
  sql`create trigger publish_overrides_append_only before update or delete on publish_overrides
    for each row execute function refuse_change()`,
];

export const definitions = {
  name: '0002-definitions',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

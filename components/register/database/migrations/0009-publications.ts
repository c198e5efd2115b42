import { type Kysely, sql } from 'kysely';

/** Publications of blueprints in ledger order, each with its number in that order. */
const statements = [
  sql`create table blueprint_publications (
    register_no integer not null,
    blueprint_id text not null,
    ordinal integer not null,
    tx_id bytea not null,
    docket_number bigint not null,
    position integer not null,
    major integer not null,
    minor integer not null,
    change_type text not null,
    content_hash text not null,
    exec_def_hash text not null,
    structural_hash text not null,
    title text not null,
    metadata jsonb not null,
    published_by text not null,
    published_at text not null,
    is_latest boolean not null,
    primary key (register_no, blueprint_id, ordinal)
  )`,
  sql`create unique index blueprint_publications_tx on blueprint_publications (register_no, tx_id)`,
  sql`create unique index blueprint_publications_version
    on blueprint_publications (register_no, blueprint_id, major, minor)`,
  sql`create unique index blueprint_publications_latest on blueprint_publications (register_no, blueprint_id)
    where is_latest`,
];

export const publicationsMigration = {
  name: '0009-publications',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

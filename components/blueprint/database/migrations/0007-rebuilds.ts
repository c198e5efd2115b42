import { type Kysely, sql } from 'kysely';

const statements = [
  sql`alter table step_cursors
    -- Number of rebuilds: a page that was read before a rebuild is not applied after it.
    add column rebuilds integer not null default 0,
    -- While the rows are rebuilt, the position that they had been read up to before. Null otherwise.
    add column rebuild_docket bigint,
    add column rebuild_position integer,
    add check ((rebuild_docket is null) = (rebuild_position is null))`,
  sql`create index step_cursors_rebuilding on step_cursors (register_id) where rebuild_docket is not null`,
];

export const rebuilds = {
  name: '0007-rebuilds',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

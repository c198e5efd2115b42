import { type Kysely, sql } from 'kysely';

/** When the rows of a register were made from steps of instances that were not started in this database. */
export const restored = {
  name: '0008-restored',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table step_cursors add column restored_at timestamptz`.execute(db);
  },
};

import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

const statements = [
  // Reported refusals with the same key are one event with a count.
  'ALTER TABLE audit_events ADD COLUMN refusal_key bytea',
  'CREATE UNIQUE INDEX audit_events_refusals ON audit_events (refusal_key) WHERE refusal_key IS NOT NULL',
];

export const refusals: Migration = {
  name: '0007-refusals',
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

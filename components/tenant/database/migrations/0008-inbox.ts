import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

const statements = [
  // No foreign key to platform_users, so that an insert does not wait for a sign-in that has locked the account.
  `CREATE TABLE inbox_entries (
    id uuid PRIMARY KEY,
    platform_user_id uuid NOT NULL,
    source_event_id uuid NOT NULL,
    category text NOT NULL,
    severity text NOT NULL,
    correlation_key text NOT NULL,
    title text NOT NULL,
    summary text,
    icon_key text,
    detail_href text,
    channel_hints text[] NOT NULL,
    writer_service_id text NOT NULL,
    occurred_at timestamptz NOT NULL,
    read_at timestamptz,
    dismissed_at timestamptz,
    UNIQUE (platform_user_id, source_event_id)
  )`,
  'CREATE INDEX inbox_entries_listing ON inbox_entries (platform_user_id, occurred_at DESC, id DESC)',
  `CREATE INDEX inbox_entries_unread ON inbox_entries (platform_user_id)
    WHERE read_at IS NULL AND dismissed_at IS NULL`,
];

export const inbox: Migration = {
  name: '0008-inbox',
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

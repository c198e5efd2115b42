import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';
import { eventCursorsTable } from '#kit/events/store.ts';

const statements = [
  // The position of this service in the event log of another service; advances in the transaction of the effect.
  eventCursorsTable,
  // No foreign key to platform_users, because the event of a wallet may arrive before the person is stored here.
  `CREATE TABLE user_wallets (
    wallet_id uuid PRIMARY KEY,
    platform_user_id text NOT NULL,
    address text NOT NULL,
    is_active boolean NOT NULL,
    created_at timestamptz NOT NULL
  )`,
  `CREATE INDEX user_wallets_oldest ON user_wallets (platform_user_id, created_at, wallet_id)
    INCLUDE (address) WHERE is_active`,
];

export const wallets: Migration = {
  name: '0004-wallets',
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

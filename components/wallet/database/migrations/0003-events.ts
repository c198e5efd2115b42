import { type Kysely, sql } from 'kysely';
import { outboxMigration } from '#kit/db/outbox.ts';

const outbox = outboxMigration('0003-events');

export const events = {
  name: outbox.name,
  async up(db: Kysely<unknown>): Promise<void> {
    await outbox.up(db);
    // Existing wallets get events too, oldest first, so that a consumer needs only the log.
    await sql`
      INSERT INTO outbox (kind, key, data)
      SELECT 'WalletCreated', id::text, jsonb_build_object(
        'walletId', id,
        'address', address,
        'ownerKind', kind,
        'ownerId', coalesce(owner_user_id, owner_organization_id),
        'status', status,
        'createdAt', to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      FROM wallets WHERE kind <> 'System' ORDER BY created_at, id`.execute(db);
  },
};

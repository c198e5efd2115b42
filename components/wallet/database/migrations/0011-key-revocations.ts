import { type Kysely, sql } from 'kysely';

/** The index by which the register service finds events of revoked keys among all others. */
export const keyRevocations = {
  name: '0011-key-revocations',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`CREATE INDEX outbox_key_revocations ON outbox (transaction_id, sequence)
      WHERE kind = 'wallet.key.revoked'`.execute(db);
  },
};

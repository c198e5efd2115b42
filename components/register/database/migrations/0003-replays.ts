import { type Kysely, sql } from 'kysely';

/**
 * Replay protection: the key that no second Action of a register may repeat, in a partial index beside the ids.
 * Existing rows keep a null key: the column is added without rewriting them and the index starts empty. So the
 * migration does not fail on transactions that were sealed twice before the rule, and takes one scan at most.
 */
export const replaysMigration = {
  name: '0003-replays',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table transaction_ids add column replay_key bytea`.execute(db);
    await sql`create unique index transaction_ids_replay on transaction_ids (replay_key, register_no)
      where replay_key is not null`.execute(db);
  },
};

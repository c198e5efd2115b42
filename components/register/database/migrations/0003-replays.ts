import { type Kysely, sql } from 'kysely';

/**
 * What no second Action of a register may repeat (L-39), in a partial index beside the ids. Rows that are there already
 * keep no key, whatever they hold: the column comes without touching them and the index starts empty, so this neither
 * fails on transactions that were sealed twice before the rule nor takes longer on a larger ledger than one scan.
 */
export const replaysMigration = {
  name: '0003-replays',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table transaction_ids add column replay_key bytea`.execute(db);
    await sql`create unique index transaction_ids_replay on transaction_ids (replay_key, register_no)
      where replay_key is not null`.execute(db);
  },
};

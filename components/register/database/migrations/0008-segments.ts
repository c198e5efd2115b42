import { type Kysely, sql } from 'kysely';

/**
 * Unique keys of a register, in segments: the open segment takes new keys, the others are sealed. Keys are random, so a
 * single index over all of them would be written everywhere; with the segment as the leading column, writes stay close
 * together however long the history is. The index makes a segment unique by itself; the register service looks a key up
 * in earlier segments (`segments`). Existing rows are segment 0.
 *
 * Transactions that an address sent to itself are counted too, so that the total of sent or received is a sum.
 *
 * Statistics of the first rows, one per register, would make `register_no` look unique, and any index on it look as
 * good as the right one, until the next ANALYZE. `n_distinct` corrects that.
 *
 * `segment` has no default: a process that predates this migration can no longer store dockets. It would neither check
 * earlier segments nor write the rows of migration 0007.
 */
const statements = [
  sql`alter table register_heads add column segment integer not null default 0,
    add column segment_count bigint not null default 0`,
  sql`update register_heads set segment_count = transaction_count`,
  sql`alter table transaction_ids add column segment integer not null default 0`,
  sql`alter table transaction_ids alter column segment drop default, drop constraint transaction_ids_pkey,
    add primary key (register_no, segment, tx_id)`,
  sql`drop index transaction_ids_replay`,
  sql`create unique index transaction_ids_replay on transaction_ids (register_no, segment, replay_key)
    where replay_key is not null`,
  sql`alter table transaction_ids alter column register_no set (n_distinct = 1)`,
  sql`alter table transaction_successors add column segment integer not null default 0`,
  sql`alter table transaction_successors alter column segment drop default,
    drop constraint transaction_successors_pkey, add primary key (register_no, segment, previous_tx_id)`,
  sql`create table segment_filters (
    register_no integer not null references registers,
    segment integer not null,
    bits bytea not null,
    primary key (register_no, segment)
  )`,
  sql`alter table segment_filters alter column bits set storage external`,
  sql`alter table recipient_counters add column sent_count bigint not null default 0`,
  sql`update recipient_counters c set sent_count = o.count from (
      select r.register_no, r.address, count(*) as count from transaction_recipients r
      join transactions t on t.register_no = r.register_no and t.docket_number = r.docket_number
        and t.position = r.position and t.sender_address = r.address
      group by r.register_no, r.address
    ) o where o.register_no = c.register_no and o.address = c.address`,
];

export const segmentsMigration = {
  name: '0008-segments',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

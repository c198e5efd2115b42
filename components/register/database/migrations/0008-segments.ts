import { type Kysely, sql } from 'kysely';

/**
 * Keys that no two transactions of a register may share, in segments: the one that is open takes new keys, the others are
 * sealed. Keys are random, so one index over all of them is written all over: with segments in front, what is written lies
 * close together however long the history is. A segment is unique by itself; the register service looks a key up in those
 * before it (`segments`). What is there already is segment 0.
 *
 * Transactions that an address sent to itself are counted too, so that what it sent or received is a sum.
 *
 * Statistics of the first rows, one of each register, would make `register_no` a key, and any index on it as good as the right
 * one until the tables are analysed again: `n_distinct` says better.
 *
 * `segment` has no default: a process of before this migration stores no docket any more. It would not look there, nor
 * would it write what 0007 keeps of a docket.
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

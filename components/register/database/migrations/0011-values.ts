import { type Kysely, sql } from 'kysely';

/**
 * One value per docket, with its transactions. The commit of a docket writes the value; index rows, recipients and
 * counters follow, and `register_projections` holds the dockets for which they are written. Dockets that are stored
 * already keep rows with records and payloads, and have no value.
 *
 * A value is stored uncompressed, so that a part of it is read without the rest.
 *
 * `transactions` gets another name: a process that predates this migration would not find the transactions of new
 * dockets. It would take them for unsealed, and omit their events for ever. Now its statements fail instead, and its
 * callers retry at a process of this release.
 */
const statements = [
  sql`alter table transactions rename to transaction_rows`,
  sql`alter table transaction_rows alter column leaf drop not null, alter column payload_hash_form drop not null,
    alter column record drop not null, alter column payload drop not null, add column instance_id text`,
  sql`create table docket_values (
    register_no integer not null,
    docket_number bigint not null,
    value bytea storage external not null,
    primary key (register_no, docket_number)
  ) partition by range (docket_number)`,
  sql`create table register_projections (
    register_no integer primary key references registers,
    height bigint not null default 0,
    rebuild boolean not null default false
  ) with (fillfactor = 50)`,
  sql`insert into register_projections (register_no, height) select register_no, height from register_heads`,
];

export const valuesMigration = {
  name: '0011-values',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};

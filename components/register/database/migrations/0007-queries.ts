import { type Kysely, sql } from 'kysely';
import { parseRecord } from '#core/ledger/record.ts';
import { participantKeysOf } from '../../queries/participants/record.ts';

/**
 * Indexes for queries: transactions of a blueprint by place, places of transactions that an address receives, the
 * totals of both, and the keys that participants published. Values longer than an index entry have no entry and are
 * found by scanning.
 */
const statements = [
  sql`create index transactions_blueprint on transactions (register_no, blueprint_id, docket_number desc, position desc)
    where octet_length(blueprint_id) <= 256`,
  sql`create table blueprint_counters (
    register_no integer not null,
    blueprint_id text not null,
    transaction_count bigint not null,
    primary key (register_no, blueprint_id)
  ) with (fillfactor = 70)`,
  sql`create table transaction_recipients (
    register_no integer not null,
    address text not null,
    docket_number bigint not null,
    position integer not null,
    primary key (register_no, address, docket_number, position)
  )`,
  sql`create table recipient_counters (
    register_no integer not null,
    address text not null,
    transaction_count bigint not null,
    primary key (register_no, address)
  ) with (fillfactor = 70)`,
  sql`create table participant_keys (
    register_no integer not null,
    address text not null,
    participant_id text not null,
    public_key text not null,
    algorithm text not null,
    status text not null,
    primary key (register_no, address)
  )`,
  sql`insert into blueprint_counters (register_no, blueprint_id, transaction_count)
    select register_no, blueprint_id, count(*) from transactions where octet_length(blueprint_id) <= 256
    group by register_no, blueprint_id`,
];

interface RecordRow {
  readonly register_no: number;
  readonly docket_number: number;
  readonly position: number;
  readonly record: Buffer;
}

const batch = 1_000;

/** Recipients are in the canonical JSON of a record. It is parsed here because PostgreSQL's JSON cannot hold NUL. */
async function fillRecipients(db: Kysely<unknown>): Promise<void> {
  let after = { register_no: -1, docket_number: -1, position: -1 };
  for (;;) {
    const { rows } =
      await sql<RecordRow>`select register_no, docket_number, position, record from transactions
      where (register_no, docket_number, position) > (${after.register_no}, ${after.docket_number}, ${after.position})
        and position(${Buffer.from('"recipients":["')}::bytea in record) > 0
      order by register_no, docket_number, position limit ${batch}`.execute(db);
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last;
    const entries = rows.flatMap((row) => {
      const { recipients } = JSON.parse(row.record.toString()) as { readonly recipients: readonly string[] };
      return [...new Set(recipients)]
        .filter((address) => Buffer.byteLength(address) <= 256 && !address.includes('\u0000'))
        .map((address) => ({ ...row, address }));
    });
    await sql`insert into transaction_recipients (register_no, address, docket_number, position)
      select * from unnest(${entries.map((one) => one.register_no)}::integer[], ${entries.map((one) => one.address)}::text[],
        ${entries.map((one) => one.docket_number)}::bigint[], ${entries.map((one) => one.position)}::integer[])`.execute(
      db,
    );
  }
}

/** Participants' records in ledger order: the last record of an address wins. */
async function fillParticipants(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<RecordRow & { readonly payload: Buffer }>`
    select register_no, docket_number, position, record, payload from transactions
    where type = 'Participant' order by register_no, docket_number, position`.execute(db);
  for (const { register_no: registerNo, record, payload } of rows) {
    for (const key of participantKeysOf(parseRecord(record), payload)) {
      await sql`insert into participant_keys (register_no, address, participant_id, public_key, algorithm, status)
        values (${registerNo}, ${key.walletAddress}, ${key.participantId}, ${key.publicKey}, ${key.algorithm}, ${key.status})
        on conflict (register_no, address) do update set participant_id = excluded.participant_id,
          public_key = excluded.public_key, algorithm = excluded.algorithm, status = excluded.status`.execute(
        db,
      );
    }
  }
}

export const queriesMigration = {
  name: '0007-queries',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
    await fillRecipients(db);
    await fillParticipants(db);
    await sql`insert into recipient_counters (register_no, address, transaction_count)
      select register_no, address, count(*) from transaction_recipients group by register_no, address`.execute(
      db,
    );
  },
};

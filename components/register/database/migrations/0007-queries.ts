import { type Kysely, sql } from 'kysely';

/**
 * What queries walk along: transactions of a blueprint by place, places of those that an address receives, and the totals of
 * both. What is longer than an index takes has no entry and is found by reading.
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

/** Records with recipients say so in their canonical JSON; they are read here because PostgreSQL's JSON holds no NUL. */
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

export const queriesMigration = {
  name: '0007-queries',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
    await fillRecipients(db);
    await sql`insert into recipient_counters (register_no, address, transaction_count)
      select register_no, address, count(*) from transaction_recipients group by register_no, address`.execute(
      db,
    );
  },
};

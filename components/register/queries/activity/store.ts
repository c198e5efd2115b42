import { sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';

type Db = Reader<RegisterSchema>;

/** Titles of registers by their ids. */
export async function titlesOf(db: Db, registerIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (registerIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('registers')
    .select(['register_id', 'title'])
    .where('register_id', 'in', registerIds)
    .execute();
  return new Map(rows.map((row) => [row.register_id, row.title]));
}

/**
 * Maximum addresses that are counted one by one, an address again in each register; above it the answer is a lower
 * bound.
 */
const mostAddresses = 100_000;

interface Statistics {
  readonly transactions: number;
  readonly senders: number;
  readonly recipients: number;
  readonly wallets: number;
  /** more addresses than are counted: their counts are lower bounds */
  readonly bounded: boolean;
  /** microseconds since the epoch; null without a transaction */
  readonly earliest: number | null;
  readonly latest: number | null;
}

/** Statistics of registers from counters and the ends of an index. */
export async function statisticsOf(db: Db, registers: readonly number[]): Promise<Statistics | undefined> {
  const numbers = sql`${registers}::integer[]`;
  const most = mostAddresses + 1;
  const senders = sql`select sender_address as address from sender_counters where register_no = any(${numbers}) limit ${most}`;
  const recipients = sql`select address from recipient_counters where register_no = any(${numbers}) limit ${most}`;
  const end = (
    direction: 'asc' | 'desc',
  ) => sql`(select ${sql.raw(direction === 'asc' ? 'min' : 'max')}(e.created_micros)
    from unnest(${numbers}) as r(register_no) cross join lateral (
      select created_micros from transaction_rows t where t.register_no = r.register_no
      order by created_micros ${sql.raw(direction)} limit 1) e)`;
  const { rows } = await sql<Statistics>`select
    (select coalesce(sum(transaction_count), 0)::bigint from register_heads where register_no = any(${numbers})) as transactions,
    (select count(distinct address)::int from (${senders}) s) as senders,
    (select count(distinct address)::int from (${recipients}) s) as recipients,
    (select count(distinct address)::int from ((${senders}) union all (${recipients})) s) as wallets,
    greatest((select count(*) from (${senders}) s), (select count(*) from (${recipients}) s)) = ${most} as bounded,
    ${end('asc')} as earliest, ${end('desc')} as latest`.execute(db);
  return rows[0];
}

import type { PoolClient } from 'pg';
import type { Transactor } from '#kit/db/db.ts';
import { statement } from '#kit/db/statement.ts';
import type { RegisterSchema } from '../../../database/schema.ts';

interface OfRegister {
  readonly registerNo: number;
}

const firstValue = statement<OfRegister>(
  'select min(docket_number) as first from docket_values where register_no = :registerNo',
);

const hasValue = (table: string) => `exists (select 1 from docket_values v
  where v.register_no = ${table}.register_no and v.docket_number = ${table}.docket_number)`;

/** Deletes the rows of dockets with a value. Rows of other dockets exist nowhere else. */
const deletions = ['transaction_rows', 'transaction_recipients'].map((table) =>
  statement<OfRegister & { readonly first: number }>(`
    delete from ${table} where register_no = :registerNo and docket_number >= :first::bigint and ${hasValue(table)}`),
);

const counters = [
  'delete from sender_counters where register_no = :registerNo',
  'delete from blueprint_counters where register_no = :registerNo',
  'delete from recipient_counters where register_no = :registerNo',
  `insert into sender_counters (register_no, sender_address, transaction_count)
    select register_no, sender_address, count(*) from transaction_rows where register_no = :registerNo group by 1, 2`,
  `insert into blueprint_counters (register_no, blueprint_id, transaction_count)
    select register_no, blueprint_id, count(*) from transaction_rows
    where register_no = :registerNo and octet_length(blueprint_id) <= 256 group by 1, 2`,
  `insert into recipient_counters (register_no, address, transaction_count, sent_count)
    select r.register_no, r.address, count(*), count(*) filter (where t.sender_address = r.address)
    from transaction_recipients r join transaction_rows t on t.register_no = r.register_no
      and t.docket_number = r.docket_number and t.position = r.position
    where r.register_no = :registerNo group by 1, 2`,
].map((text) => statement<OfRegister>(text));

const restart = statement<OfRegister & { readonly first: number }>(`
  update register_projections set height = :first::bigint, rebuild = false where register_no = :registerNo`);

/**
 * Deletes the index rows of a register's dockets with a value, counts the others again, and sets the cursor back, in the
 * open transaction; returns the cursor. Readers see the old rows until it commits.
 *
 * @param height the present cursor, which stays when no docket has a value
 */
export async function rebuildIndex(client: PoolClient, registerNo: number, height: number): Promise<number> {
  await client.query('set local statement_timeout = 0');
  const found = await client.query<{ first: number | null }>(firstValue({ registerNo }));
  const first = found.rows[0]?.first ?? height;
  for (const deletion of deletions) await client.query(deletion({ registerNo, first }));
  for (const counter of counters) await client.query(counter({ registerNo }));
  await client.query(restart({ registerNo, first }));
  return first;
}

/** Requests that the index rows of a register are written anew. */
export async function requestRebuild(tx: Transactor<RegisterSchema>, registerNo: number): Promise<void> {
  await tx
    .insertInto('register_projections')
    .values({ register_no: registerNo, rebuild: true })
    .onConflict((conflict) => conflict.column('register_no').doUpdateSet({ rebuild: true }))
    .execute();
}

import { sql } from 'kysely';
import type { Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from './schema.ts';

/** Tables whose rows are of no use once they have expired, by their keys. */
export const EXPIRING = [
  ['access_tokens', 'token_hash'],
  ['pushed_requests', 'request_hash'],
  ['authorization_codes', 'code_hash'],
  ['refresh_tokens', 'token_hash'],
  ['used_values', 'value_hash'],
] as const satisfies readonly (readonly [keyof CredentialDatabase, string])[];

/** Deletes rows that have expired, at most so many; returns their number. */
export async function deleteExpired(
  tx: Transactor<CredentialDatabase>,
  [table, key]: (typeof EXPIRING)[number],
  { now, most }: { readonly now: Date; readonly most: number },
): Promise<number> {
  const [from, id] = [sql.table(table), sql.ref(key)];
  const { numAffectedRows = 0n } = await sql`delete from ${from} where ${id} in (
    select ${id} from ${from} where expires_at < ${now} limit ${most} for update skip locked)`.execute(tx);
  return Number(numAffectedRows);
}

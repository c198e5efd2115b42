import { sha256 } from '#core/crypto/hash.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';

type DB = CredentialDatabase;

/** A secret that all replicas share, by name; the first process makes it. */
export async function ensureSecret(tx: Transactor<DB>, name: string, made: Buffer): Promise<Buffer> {
  await tx
    .insertInto('secrets')
    .values({ name, value: made })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const { value } = await tx
    .selectFrom('secrets')
    .select('value')
    .where('name', '=', name)
    .executeTakeFirstOrThrow();
  return value;
}

/** Whether a value that serves once was used. */
export async function wasUsed(db: Reader<DB>, value: string): Promise<boolean> {
  const found = await db
    .selectFrom('used_values')
    .select('value_hash')
    .where('value_hash', '=', Buffer.from(sha256(value)))
    .executeTakeFirst();
  return found !== undefined;
}

/**
 * Marks a value as used, in the transaction of what it is used for; false when it was used before. A transaction that
 * uses it at the same time waits for this one.
 * @param expiresAt when the value itself cannot be used any more
 */
export async function useOnce(tx: Transactor<DB>, value: string, expiresAt: Date): Promise<boolean> {
  const inserted = await tx
    .insertInto('used_values')
    .values({ value_hash: Buffer.from(sha256(value)), expires_at: expiresAt })
    .onConflict((conflict) => conflict.doNothing())
    .returning('value_hash')
    .executeTakeFirst();
  return inserted !== undefined;
}

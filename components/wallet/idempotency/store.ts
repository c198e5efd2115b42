import { sql } from 'kysely';
import { AppError } from '#core/errors/errors.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { WalletDatabase } from '../database/schema.ts';

/** One use of an `Idempotency-Key` (decision D40): same key and body within 24 h name the same resource. */
export interface IdempotentUse {
  /** who, on which route */
  readonly owner: string;
  readonly key: string;
  readonly bodyHash: Buffer;
  readonly resourceId: string;
  readonly nowMs: number;
}

const LIFETIME_MS = 24 * 60 * 60 * 1000;
const PURGE_LIMIT = 100;

/**
 * Claims the key for `resourceId`. A second claim waits for the first one's transaction.
 * @returns the id of the resource the key already named, or `undefined` when this use is the first.
 * @throws AppError conflict IDEMPOTENCY_KEY_REUSED when the body differs.
 */
export async function claimKey(
  tx: Transactor<WalletDatabase>,
  use: IdempotentUse,
): Promise<string | undefined> {
  await purge(tx, new Date(use.nowMs - LIFETIME_MS), use);
  const claimed = await tx
    .insertInto('idempotency_keys')
    .values({
      owner: use.owner,
      key: use.key,
      body_hash: use.bodyHash,
      resource_id: use.resourceId,
      created_at: new Date(use.nowMs),
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('key')
    .executeTakeFirst();
  if (claimed !== undefined) return undefined;
  const earlier = await tx
    .selectFrom('idempotency_keys')
    .select(['body_hash', 'resource_id'])
    .where('owner', '=', use.owner)
    .where('key', '=', use.key)
    .executeTakeFirst();
  if (earlier === undefined || !earlier.body_hash.equals(use.bodyHash)) {
    throw new AppError(
      'conflict',
      'IDEMPOTENCY_KEY_REUSED',
      'the Idempotency-Key was used with another body',
    );
  }
  return earlier.resource_id;
}

// The key's own expired row goes first, then a bounded number of others.
async function purge(tx: Transactor<WalletDatabase>, before: Date, use: IdempotentUse): Promise<void> {
  await sql`
    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM idempotency_keys WHERE created_at <= ${before}
      ORDER BY (owner = ${use.owner} AND key = ${use.key}) DESC LIMIT ${PURGE_LIMIT}
    ))`.execute(tx);
}

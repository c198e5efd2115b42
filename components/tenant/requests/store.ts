import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';

type DB = TenantDatabase;

export interface StoredAnswer {
  readonly bodyHash: Buffer;
  /** JSON; undefined while the request is running. */
  readonly answer: string | undefined;
}

export interface KeyClaim {
  readonly keyHash: Buffer;
  readonly bodyHash: Buffer;
  readonly nowMs: number;
  /** Answers older than this count no more. */
  readonly keptFromMs: number;
  /** Nor do claims without an answer that are older than this: whoever made them is gone. */
  readonly runningFromMs: number;
}

/** Undefined when the key is now the caller's; what is stored under it otherwise. */
export async function claimKey(tx: Transactor<DB>, claim: KeyClaim): Promise<StoredAnswer | undefined> {
  await tx
    .deleteFrom('idempotency_keys')
    .where('key_hash', '=', claim.keyHash)
    .where((where) =>
      where.or([
        where('created_at', '<', new Date(claim.keptFromMs)),
        where.and([where('answer', 'is', null), where('created_at', '<', new Date(claim.runningFromMs))]),
      ]),
    )
    .execute();
  const claimed = await tx
    .insertInto('idempotency_keys')
    .values({
      key_hash: claim.keyHash,
      body_hash: claim.bodyHash,
      answer: null,
      created_at: new Date(claim.nowMs),
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('key_hash')
    .executeTakeFirst();
  if (claimed !== undefined) return undefined;
  const row = await tx
    .selectFrom('idempotency_keys')
    .select(['body_hash', 'answer'])
    .where('key_hash', '=', claim.keyHash)
    .executeTakeFirst();
  return row && { bodyHash: row.body_hash, answer: row.answer ?? undefined };
}

export async function completeKey(tx: Transactor<DB>, keyHash: Buffer, answer: string): Promise<void> {
  await tx.updateTable('idempotency_keys').set({ answer }).where('key_hash', '=', keyHash).execute();
}

export async function releaseKey(tx: Transactor<DB>, keyHash: Buffer): Promise<void> {
  await tx
    .deleteFrom('idempotency_keys')
    .where('key_hash', '=', keyHash)
    .where('answer', 'is', null)
    .execute();
}

export async function pruneKeys(tx: Transactor<DB>, keptFromMs: number): Promise<void> {
  await tx.deleteFrom('idempotency_keys').where('created_at', '<', new Date(keptFromMs)).execute();
}

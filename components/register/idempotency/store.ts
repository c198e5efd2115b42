import { sql } from 'kysely';
import type { Transactor } from '#kit/db/db.ts';
import type { RegisterSchema } from '../database/schema.ts';

export interface IdempotencyClaim {
  readonly scope: string;
  readonly key: string;
  readonly bodyHash: string;
  readonly now: Date;
  /** claims and answers older than this are forgotten */
  readonly forgetBefore: Date;
  /** unanswered claims older than this were left by a crash */
  readonly abandonedBefore: Date;
}

export interface KnownRequest {
  readonly bodyHash: string;
  readonly status: number | null;
  readonly body: unknown;
}

/** Claims a key; returns what is known when somebody else has it. */
export async function claim(
  tx: Transactor<RegisterSchema>,
  wanted: IdempotencyClaim,
): Promise<KnownRequest | undefined> {
  await sql`delete from idempotency_keys where ctid in (
    select ctid from idempotency_keys where claimed_at < ${wanted.forgetBefore} limit 100)`.execute(tx);
  const taken = await sql`
    insert into idempotency_keys (scope, key, body_hash, claimed_at)
    values (${wanted.scope}, ${wanted.key}, ${wanted.bodyHash}, ${wanted.now})
    on conflict (scope, key) do update set body_hash = excluded.body_hash, claimed_at = excluded.claimed_at
      where idempotency_keys.status is null and idempotency_keys.claimed_at < ${wanted.abandonedBefore}
    returning 1`.execute(tx);
  if (taken.rows.length === 1) return undefined;
  return tx
    .selectFrom('idempotency_keys')
    .select(['body_hash as bodyHash', 'status', 'body'])
    .where('scope', '=', wanted.scope)
    .where('key', '=', wanted.key)
    .executeTakeFirstOrThrow();
}

export async function keepAnswer(
  tx: Transactor<RegisterSchema>,
  at: { readonly scope: string; readonly key: string },
  answer: { readonly status: number; readonly body: unknown },
): Promise<void> {
  await tx
    .updateTable('idempotency_keys')
    .set({ status: answer.status, body: JSON.stringify(answer.body) })
    .where('scope', '=', at.scope)
    .where('key', '=', at.key)
    .execute();
}

export async function dropClaim(
  tx: Transactor<RegisterSchema>,
  at: { readonly scope: string; readonly key: string },
): Promise<void> {
  await tx
    .deleteFrom('idempotency_keys')
    .where('scope', '=', at.scope)
    .where('key', '=', at.key)
    .where('status', 'is', null)
    .execute();
}

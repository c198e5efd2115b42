import { sql } from 'kysely';
import type { Revocation, RevocationCursor, RevocationKind } from '#kit/auth/auth.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

export async function appendRevocation(tx: Transactor<DB>, revocation: Revocation): Promise<void> {
  await tx
    .insertInto('revocations')
    .values({
      kind: revocation.kind,
      key: revocation.key,
      not_before_ms: revocation.notBeforeMs,
      expires_at_ms: revocation.expiresAtMs,
    })
    .execute();
}

interface RevocationPage {
  readonly revocations: readonly Revocation[];
  readonly next: RevocationCursor;
  readonly complete: boolean;
}

/** Maximum number of unsettled revocations in a page, while an older transaction is still open. */
const maxUnsettled = 10_000;

/**
 * Revocations in force after the cursor. The cursor advances only over settled revocations, those older than every open
 * transaction, so that it does not skip a late commit. Unsettled revocations are included in every page until they are
 * settled, so that they take effect at once even while another transaction of the cluster stays open.
 */
export async function listRevocations(
  db: Reader<DB>,
  after: RevocationCursor,
  query: { readonly limit: number; readonly nowMs: number },
): Promise<RevocationPage> {
  const columns = sql`transaction_id, sequence, kind, key, not_before_ms, expires_at_ms`;
  const { rows } = await sql<RevocationRow>`
    WITH edge AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS oldest_open),
    settled AS (
      SELECT ${columns} FROM revocations
      WHERE transaction_id < (SELECT oldest_open FROM edge)
        AND (transaction_id, sequence) > (${String(after.transactionId)}::xid8, ${String(after.sequence)}::bigint)
        AND expires_at_ms > ${query.nowMs}
      ORDER BY transaction_id, sequence LIMIT ${query.limit}),
    unsettled AS (
      SELECT ${columns} FROM revocations
      WHERE transaction_id >= (SELECT oldest_open FROM edge) AND expires_at_ms > ${query.nowMs}
      ORDER BY transaction_id DESC, sequence DESC LIMIT ${maxUnsettled})
    SELECT transaction_id::text, sequence::text, kind, key, not_before_ms, expires_at_ms, is_settled
    FROM (SELECT *, true AS is_settled FROM settled UNION ALL SELECT *, false FROM unsettled) listed
    ORDER BY listed.transaction_id, listed.sequence`.execute(db);
  const settled = rows.filter(({ is_settled }) => is_settled);
  const last = settled.at(-1);
  return {
    revocations: rows.map(toRevocation),
    next:
      last === undefined
        ? after
        : { transactionId: BigInt(last.transaction_id), sequence: BigInt(last.sequence) },
    complete: settled.length < query.limit,
  };
}

/** The newest time at which tokens of these keys were revoked; undefined when never. */
export async function findNotBefore(
  db: Reader<DB>,
  keys: readonly string[],
  nowMs: number,
): Promise<number | undefined> {
  const row = await db
    .selectFrom('revocations')
    .select(sql<number | null>`max(not_before_ms)`.as('at'))
    .where('key', 'in', keys)
    .where('kind', 'in', ['identity', 'platform_user', 'organization'])
    .where('expires_at_ms', '>', nowMs)
    .executeTakeFirst();
  return row?.at ?? undefined;
}

export async function pruneRevocations(tx: Transactor<DB>, nowMs: number): Promise<void> {
  await tx.deleteFrom('revocations').where('expires_at_ms', '<', nowMs).execute();
}

interface RevocationRow {
  readonly transaction_id: string;
  readonly sequence: string;
  readonly kind: RevocationKind;
  readonly key: string;
  readonly not_before_ms: number;
  readonly expires_at_ms: number;
  readonly is_settled: boolean;
}

function toRevocation(row: RevocationRow): Revocation {
  return {
    kind: row.kind,
    key: row.key,
    notBeforeMs: Number(row.not_before_ms),
    expiresAtMs: Number(row.expires_at_ms),
  };
}

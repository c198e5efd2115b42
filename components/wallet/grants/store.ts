import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { AccessRight, WalletDatabase, WalletGrantTable } from '../database/schema.ts';
import type { GrantFacts } from './delegation.ts';

export interface Grant extends GrantFacts {
  readonly id: string;
  readonly walletId: string;
  readonly subject: string;
  readonly accessRight: AccessRight;
  readonly reason: string | undefined;
  readonly grantedBy: string;
  readonly grantedAtMs: number;
}

type Db = Reader<WalletDatabase>;
type Tx = Transactor<WalletDatabase>;

/** False when the subject holds an active grant on the wallet; an expired one is closed and replaced. */
export async function insertGrant(tx: Tx, grant: Grant): Promise<boolean> {
  const now = new Date(grant.grantedAtMs);
  await tx
    .updateTable('wallet_grants')
    .set({ ended_at: now })
    .where('wallet_id', '=', grant.walletId)
    .where('subject', '=', grant.subject)
    .where('ended_at', 'is', null)
    .where('expires_at', '<=', now)
    .execute();
  const row = await tx
    .insertInto('wallet_grants')
    .values(toRow(grant))
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  return row !== undefined;
}

/** The grant of a subject that has not ended; it may have expired. There is at most one. */
export async function findOpenGrant(db: Db, walletId: string, subject: string): Promise<Grant | undefined> {
  const row = await db
    .selectFrom('wallet_grants')
    .selectAll()
    .where('wallet_id', '=', walletId)
    .where('subject', '=', subject)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

/** The grants of a subject on these wallets that have not ended, by wallet; they may have expired. */
export async function findOpenGrants(
  db: Db,
  subject: string,
  walletIds: readonly string[],
): Promise<ReadonlyMap<string, Grant>> {
  if (walletIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('wallet_grants')
    .selectAll()
    .where('wallet_id', 'in', walletIds)
    .where('subject', '=', subject)
    .where('ended_at', 'is', null)
    .execute();
  return new Map(rows.map((row) => [row.wallet_id, fromRow(row)]));
}

export async function findGrantById(db: Db, id: string): Promise<Grant | undefined> {
  const row = await db.selectFrom('wallet_grants').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

/** Every grant of the wallet, newest first, ended ones too. */
export async function listGrants(
  db: Db,
  walletId: string,
  window: { readonly offset: number; readonly limit: number },
): Promise<{ grants: Grant[]; totalCount: number }> {
  const all = db.selectFrom('wallet_grants').where('wallet_id', '=', walletId);
  const rows = await all
    .selectAll()
    .orderBy('granted_at', 'desc')
    .orderBy('id')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  const count = await all.select(({ fn }) => fn.countAll<string>().as('count')).executeTakeFirst();
  return { grants: rows.map(fromRow), totalCount: Number(count?.count ?? 0) };
}

/** False when the subject had no open grant. */
export async function endGrant(tx: Tx, walletId: string, subject: string, nowMs: number): Promise<boolean> {
  const row = await tx
    .updateTable('wallet_grants')
    .set({ ended_at: new Date(nowMs) })
    .where('wallet_id', '=', walletId)
    .where('subject', '=', subject)
    .where('ended_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Ends every open grant on a wallet. */
export async function endGrants(tx: Tx, walletId: string, nowMs: number): Promise<void> {
  await tx
    .updateTable('wallet_grants')
    .set({ ended_at: new Date(nowMs) })
    .where('wallet_id', '=', walletId)
    .where('ended_at', 'is', null)
    .execute();
}

function fromRow(row: Selectable<WalletGrantTable>): Grant {
  return {
    id: row.id,
    walletId: row.wallet_id,
    subject: row.subject,
    accessRight: row.access_right,
    reason: row.reason ?? undefined,
    grantedBy: row.granted_by,
    grantedAtMs: row.granted_at.getTime(),
    expiresAtMs: row.expires_at?.getTime(),
    ended: row.ended_at !== null,
    allowedContexts: row.allowed_contexts,
  };
}

function toRow(grant: Grant) {
  return {
    id: grant.id,
    wallet_id: grant.walletId,
    subject: grant.subject,
    access_right: grant.accessRight,
    reason: grant.reason ?? null,
    granted_by: grant.grantedBy,
    granted_at: new Date(grant.grantedAtMs),
    expires_at: grant.expiresAtMs === undefined ? null : new Date(grant.expiresAtMs),
    allowed_contexts: [...grant.allowedContexts],
    ended_at: null,
  };
}

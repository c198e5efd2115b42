import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { OneTimeSecretTable, TenantDatabase } from '../../database/schema.ts';
import type { OneTimePurpose } from './secret.ts';

type DB = TenantDatabase;

/** A row: what is sealed is opened by the caller. */
export interface StoredSecret {
  readonly hash: Buffer;
  readonly subject: string;
  readonly sealed: Buffer;
  readonly attempts: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** Why a secret does not act. spent: too many wrong uses. */
export type Dead = 'unknown' | 'used' | 'expired' | 'spent';

interface NewSecret {
  readonly hash: Buffer;
  readonly purpose: OneTimePurpose;
  readonly subject: string;
  readonly sealed: Buffer;
  readonly maxAttempts: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

export async function insertSecret(tx: Transactor<DB>, secret: NewSecret): Promise<void> {
  await tx
    .insertInto('one_time_secrets')
    .values({
      hash: secret.hash,
      purpose: secret.purpose,
      subject: secret.subject,
      sealed: secret.sealed,
      max_attempts: secret.maxAttempts,
      created_at: new Date(secret.createdAtMs),
      expires_at: new Date(secret.expiresAtMs),
      consumed_at: null,
    })
    .execute();
}

interface Key {
  readonly purpose: OneTimePurpose;
  readonly hash: Buffer;
}

/**
 * Consumes a secret in the transaction of its effect: of parallel uses one gets the row, the others learn why not. Wrong
 * uses are not looked at: who judges a guess counts it first, and the last one that is allowed may be right.
 */
export async function takeSecret(tx: Transactor<DB>, key: Key, nowMs: number): Promise<StoredSecret | Dead> {
  const row = await tx
    .updateTable('one_time_secrets')
    .set({ consumed_at: new Date(nowMs) })
    .where('hash', '=', key.hash)
    .where('purpose', '=', key.purpose)
    .where('consumed_at', 'is', null)
    .where('expires_at', '>', new Date(nowMs))
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? explain(tx, key, nowMs) : toSecret(row);
}

export async function findSecret(db: Reader<DB>, key: Key, nowMs: number): Promise<StoredSecret | Dead> {
  const row = await db
    .selectFrom('one_time_secrets')
    .selectAll()
    .where('hash', '=', key.hash)
    .where('purpose', '=', key.purpose)
    .executeTakeFirst();
  return row === undefined ? 'unknown' : (deathOf(row, nowMs) ?? toSecret(row));
}

async function explain(db: Reader<DB>, key: Key, nowMs: number): Promise<Dead> {
  const found = await findSecret(db, key, nowMs);
  // It lived again since: the transaction that had taken it was rolled back. This use is over nevertheless.
  return typeof found === 'string' ? found : 'used';
}

/** Counts a use before it is judged, so that parallel guesses count too. */
export async function countAttempt(
  tx: Transactor<DB>,
  key: Key,
  nowMs: number,
): Promise<StoredSecret | Dead> {
  const row = await tx
    .updateTable('one_time_secrets')
    .set({ attempts: sql`attempts + 1` })
    .where('hash', '=', key.hash)
    .where('purpose', '=', key.purpose)
    .where('consumed_at', 'is', null)
    .where('expires_at', '>', new Date(nowMs))
    .whereRef('attempts', '<', 'max_attempts')
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? explain(tx, key, nowMs) : toSecret(row);
}

/** The latest secret of a subject, whatever its state: codes are found so. */
export async function findLatest(
  db: Reader<DB>,
  purpose: OneTimePurpose,
  subject: string,
): Promise<{ readonly hash: Buffer; readonly createdAtMs: number } | undefined> {
  const row = await db
    .selectFrom('one_time_secrets')
    .select(['hash', 'created_at'])
    .where('purpose', '=', purpose)
    .where('subject', '=', subject)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row && { hash: row.hash, createdAtMs: row.created_at.getTime() };
}

/** Times at which secrets of a subject were made since then, the latest first. */
export async function listIssues(
  db: Reader<DB>,
  purpose: OneTimePurpose,
  subject: string,
  sinceMs: number,
): Promise<readonly number[]> {
  const rows = await db
    .selectFrom('one_time_secrets')
    .select('created_at')
    .where('purpose', '=', purpose)
    .where('subject', '=', subject)
    .where('created_at', '>', new Date(sinceMs))
    .orderBy('created_at', 'desc')
    .execute();
  return rows.map((row) => row.created_at.getTime());
}

/** Ends the living secrets of a subject, for example earlier codes, or every sign-in that an account has begun. */
export async function endSecrets(
  tx: Transactor<DB>,
  purpose: OneTimePurpose,
  subject: string,
  atMs: number,
): Promise<void> {
  await tx
    .updateTable('one_time_secrets')
    .set({ consumed_at: new Date(atMs) })
    .where('purpose', '=', purpose)
    .where('subject', '=', subject)
    .where('consumed_at', 'is', null)
    .execute();
}

/** Lets one transaction at a time issue secrets of a purpose for a subject, until it ends. */
export async function lockIssues(
  tx: Transactor<DB>,
  purpose: OneTimePurpose,
  subject: string,
): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${purpose}:${subject}`}, 0))`.execute(tx);
}

/** Deletes secrets that expired before then. */
export async function pruneSecrets(tx: Transactor<DB>, expiredBeforeMs: number): Promise<void> {
  await tx.deleteFrom('one_time_secrets').where('expires_at', '<', new Date(expiredBeforeMs)).execute();
}

function deathOf(row: Selectable<OneTimeSecretTable>, nowMs: number): Dead | undefined {
  if (row.consumed_at !== null) return 'used';
  if (row.expires_at.getTime() <= nowMs) return 'expired';
  return row.attempts >= row.max_attempts ? 'spent' : undefined;
}

function toSecret(row: Selectable<OneTimeSecretTable>): StoredSecret {
  return {
    hash: row.hash,
    subject: row.subject,
    sealed: row.sealed,
    attempts: row.attempts,
    createdAtMs: row.created_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
  };
}

import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { PublicJwk, TenantDatabase } from '../../database/schema.ts';
import type { KeyRow, KeyState } from './plan.ts';

type DB = TenantDatabase;

export interface StoredKey extends KeyRow {
  readonly publicJwk: PublicJwk;
  readonly sealedPrivateKey: Buffer;
}

const states: readonly KeyState[] = ['next', 'current', 'retired'];

export async function listKeys(db: Reader<DB>): Promise<StoredKey[]> {
  const rows = await db.selectFrom('signing_keys').selectAll().orderBy('created_at').orderBy('kid').execute();
  return rows.map((row) => ({
    kid: row.kid,
    state: states.find((state) => state === row.state) ?? 'retired',
    createdAtMs: row.created_at.getTime(),
    activatedAtMs: row.activated_at?.getTime(),
    retiredAtMs: row.retired_at?.getTime(),
    publicJwk: row.public_jwk,
    sealedPrivateKey: row.sealed_private_key,
  }));
}

/** Only one replica rotates the keys at a time. */
export async function lockKeys(tx: Transactor<DB>): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended('chancery.tenant.signing-keys', 0))`.execute(tx);
}

export async function insertKey(
  tx: Transactor<DB>,
  key: {
    readonly kid: string;
    readonly state: 'next' | 'current';
    readonly publicJwk: object;
    readonly sealed: Buffer;
  },
  atMs: number,
): Promise<void> {
  await tx
    .insertInto('signing_keys')
    .values({
      kid: key.kid,
      state: key.state,
      public_jwk: JSON.stringify(key.publicJwk),
      sealed_private_key: key.sealed,
      created_at: new Date(atMs),
      activated_at: key.state === 'current' ? new Date(atMs) : null,
      retired_at: null,
    })
    .execute();
}

export async function moveKey(
  tx: Transactor<DB>,
  kid: string,
  move: { readonly to: 'current' | 'retired'; readonly atMs: number },
): Promise<void> {
  const at = new Date(move.atMs);
  await tx
    .updateTable('signing_keys')
    .set(
      move.to === 'current' ? { state: 'current', activated_at: at } : { state: 'retired', retired_at: at },
    )
    .where('kid', '=', kid)
    .execute();
}

export async function removeKeys(tx: Transactor<DB>, kids: readonly string[]): Promise<void> {
  if (kids.length > 0) await tx.deleteFrom('signing_keys').where('kid', 'in', kids).execute();
}

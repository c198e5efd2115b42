import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { DerivedKeyTable, WalletDatabase } from '../../database/schema.ts';
import { fromRow } from '../records/store.ts';
import type { Wallet } from '../records/wallet.ts';
import type { DerivedKeyName } from './path.ts';

type Db = Reader<WalletDatabase>;
type Tx = Transactor<WalletDatabase>;

/** A derived key with its wallet, which has the same id. */
export interface DerivedKey extends DerivedKeyName {
  readonly wallet: Wallet;
  readonly masterId: string;
  /** number of the key under its name, from 0 */
  readonly index: number;
  readonly derivationPath: string;
  readonly createdAtMs: number;
  readonly rotatedAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
}

/** Keys of one name. */
interface NamedKeys {
  /** There is at most one. */
  readonly active: DerivedKey | undefined;
  /** Index of the next key. */
  readonly nextIndex: number;
}

/**
 * The active key of a name and the index of the next one, of one instant: read one after the other, a key that is stored
 * between the two would get a second active one beside it.
 */
export async function findNamedKeys(db: Db, name: DerivedKeyName): Promise<NamedKeys> {
  const rows = await named(db, name).orderBy('k.key_index', 'desc').execute();
  const active = rows.find(({ key_status }) => key_status === 'Active');
  return {
    active: active === undefined ? undefined : keyOf(active),
    nextIndex: (rows[0]?.key_index ?? -1) + 1,
  };
}

/** A key of an organisation by the id of its wallet. */
export async function findDerivedKey(
  db: Db,
  organizationId: string,
  id: string,
): Promise<DerivedKey | undefined> {
  const row = await keys(db, organizationId).where('k.id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : keyOf(row);
}

/** Every key of the organisation, newest first. */
export async function listDerivedKeys(
  db: Db,
  organizationId: string,
  window: { readonly offset: number; readonly limit: number },
): Promise<{ keys: DerivedKey[]; totalCount: number }> {
  const rows = await keys(db, organizationId)
    .orderBy('k.created_at', 'desc')
    .orderBy('k.id')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  const count = await db
    .selectFrom('derived_keys')
    .select(sql<number>`count(*)::int`.as('total'))
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow();
  return { keys: rows.map(keyOf), totalCount: count.total };
}

export async function hasDerivedKeys(db: Db, masterId: string): Promise<boolean> {
  const row = await db
    .selectFrom('derived_keys')
    .select('id')
    .where('master_id', '=', masterId)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

export async function insertDerivedKey(tx: Tx, key: DerivedKey): Promise<void> {
  await tx
    .insertInto('derived_keys')
    .values({
      id: key.wallet.id,
      master_id: key.masterId,
      organization_id: key.organizationId,
      user_id: key.userId,
      department_id: key.departmentId,
      usage: key.usage,
      key_index: key.index,
      derivation_path: key.derivationPath,
      created_at: new Date(key.createdAtMs),
      rotated_at: null,
      revoked_at: null,
    })
    .execute();
}

export async function markEnd(tx: Tx, id: string, end: 'rotated' | 'revoked', atMs: number): Promise<void> {
  const at = new Date(atMs);
  await tx
    .updateTable('derived_keys')
    .set(end === 'rotated' ? { rotated_at: at } : { revoked_at: at })
    .where('id', '=', id)
    .execute();
}

function keys(db: Db, organizationId: string) {
  return db
    .selectFrom('derived_keys as k')
    .innerJoin('wallets as w', 'w.id', 'k.id')
    .selectAll('w')
    .select(['k.master_id', 'k.organization_id', 'k.user_id', 'k.department_id', 'k.usage', 'k.key_index'])
    .select(['k.derivation_path', 'k.rotated_at', 'k.revoked_at'])
    .where('k.organization_id', '=', organizationId);
}

function named(db: Db, { organizationId, userId, departmentId, usage }: DerivedKeyName) {
  return keys(db, organizationId)
    .where('k.user_id', '=', userId)
    .where('k.department_id', '=', departmentId)
    .where('k.usage', '=', usage);
}

type KeyRow = Parameters<typeof fromRow>[0] & Omit<Selectable<DerivedKeyTable>, 'id' | 'created_at'>;

function keyOf(row: KeyRow): DerivedKey {
  const wallet = fromRow(row);
  return {
    wallet,
    masterId: row.master_id,
    organizationId: row.organization_id,
    userId: row.user_id,
    departmentId: row.department_id,
    usage: row.usage,
    index: row.key_index,
    derivationPath: row.derivation_path,
    createdAtMs: wallet.createdAtMs,
    rotatedAtMs: row.rotated_at?.getTime(),
    revokedAtMs: row.revoked_at?.getTime(),
  };
}

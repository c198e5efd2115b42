import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

/** The present authority of an organisation. */
export interface StoredRoot {
  readonly id: string;
  readonly organizationId: string;
  readonly walletAddress: string;
  /** DER. */
  readonly certificate: Buffer;
  readonly keyThumbprint: string;
  readonly notAfterMs: number;
  readonly createdAtMs: number;
  /** Rises with each revocation. */
  readonly revision: number;
  /** The newest signed list; undefined before the first one. */
  readonly crl: StoredCrl | undefined;
}

interface StoredCrl {
  /** DER. */
  readonly bytes: Buffer;
  readonly number: number;
  /** The revision of the root that the list shows. */
  readonly revision: number;
  readonly thisUpdateMs: number;
  readonly nextUpdateMs: number;
}

export async function findRoot(db: Reader<DB>, organizationId: string): Promise<StoredRoot | undefined> {
  const row = await presentRoot(db, organizationId).executeTakeFirst();
  return row && toRoot(row);
}

/** Locks the present root until the transaction ends: leaves, revocations and lists of a root follow one another. */
export async function lockRoot(tx: Transactor<DB>, organizationId: string): Promise<StoredRoot | undefined> {
  const row = await presentRoot(tx, organizationId).forUpdate().executeTakeFirst();
  return row && toRoot(row);
}

function presentRoot(db: Reader<DB>, organizationId: string) {
  return db
    .selectFrom('organization_roots')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('superseded_at', 'is', null);
}

export type NewRoot = Omit<StoredRoot, 'revision' | 'crl'>;

/** Replaces the present root, if any; the numbers of revocation lists go on. */
export async function replaceRoot(tx: Transactor<DB>, root: NewRoot): Promise<StoredRoot> {
  const earlier = await tx
    .updateTable('organization_roots')
    .set({ superseded_at: new Date(root.createdAtMs) })
    .where('organization_id', '=', root.organizationId)
    .where('superseded_at', 'is', null)
    .returning(['revision', 'crl_number'])
    .executeTakeFirst();
  const inserted = await tx
    .insertInto('organization_roots')
    .values({
      id: root.id,
      organization_id: root.organizationId,
      wallet_address: root.walletAddress,
      certificate: root.certificate,
      key_thumbprint: root.keyThumbprint,
      not_after: new Date(root.notAfterMs),
      created_at: new Date(root.createdAtMs),
      superseded_at: null,
      revision: earlier?.revision ?? 0,
      crl_number: earlier?.crl_number ?? 0,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return toRoot(inserted);
}

/** Marks the list of the present root as out of date. */
export async function raiseRevision(tx: Transactor<DB>, organizationId: string): Promise<void> {
  await tx
    .updateTable('organization_roots')
    .set((row) => ({ revision: row('revision', '+', 1) }))
    .where('organization_id', '=', organizationId)
    .where('superseded_at', 'is', null)
    .execute();
}

/** Takes the next number of a revocation list; numbers that end in no list stay unused. */
export async function takeCrlNumber(tx: Transactor<DB>, rootId: string): Promise<number> {
  const row = await tx
    .updateTable('organization_roots')
    .set((columns) => ({ crl_number: columns('crl_number', '+', 1) }))
    .where('id', '=', rootId)
    .returning('crl_number')
    .executeTakeFirstOrThrow();
  return row.crl_number;
}

/** Stores a signed list, unless a newer one is stored. */
export async function saveCrl(tx: Transactor<DB>, rootId: string, crl: StoredCrl): Promise<void> {
  await tx
    .updateTable('organization_roots')
    .set({
      crl: crl.bytes,
      crl_signed_number: crl.number,
      crl_revision: crl.revision,
      crl_this_update: new Date(crl.thisUpdateMs),
      crl_next_update: new Date(crl.nextUpdateMs),
    })
    .where('id', '=', rootId)
    .where((where) =>
      where.or([where('crl_signed_number', 'is', null), where('crl_signed_number', '<', crl.number)]),
    )
    .execute();
}

interface Revocation {
  readonly serialNumber: string;
  readonly revokedAtMs: number;
  readonly reason: string;
}

/** Revoked certificates that were valid after an instant, of every root with the key of this one. */
export async function listRevoked(
  db: Reader<DB>,
  root: Pick<StoredRoot, 'organizationId' | 'keyThumbprint'>,
  validAfterMs: number,
): Promise<Revocation[]> {
  const rows = await db
    .selectFrom('organization_certificates as c')
    .innerJoin('organization_roots as r', 'r.id', 'c.root_id')
    .select(['c.serial_number', 'c.revoked_at', 'c.revocation_reason'])
    .where('c.organization_id', '=', root.organizationId)
    .where('r.key_thumbprint', '=', root.keyThumbprint)
    .where('c.status', '=', 'Revoked')
    .where('c.not_after', '>', new Date(validAfterMs))
    .orderBy('c.revoked_at')
    .orderBy('c.id')
    .execute();
  return rows.map((row) => ({
    serialNumber: row.serial_number,
    revokedAtMs: row.revoked_at?.getTime() ?? 0,
    reason: row.revocation_reason ?? '',
  }));
}

function toRoot(row: Selectable<DB['organization_roots']>): StoredRoot {
  return {
    id: row.id,
    organizationId: row.organization_id,
    walletAddress: row.wallet_address,
    certificate: row.certificate,
    keyThumbprint: row.key_thumbprint,
    notAfterMs: row.not_after.getTime(),
    createdAtMs: row.created_at.getTime(),
    revision: row.revision,
    crl: toCrl(row),
  };
}

function toCrl(row: Selectable<DB['organization_roots']>): StoredCrl | undefined {
  const { crl, crl_signed_number, crl_revision, crl_this_update, crl_next_update } = row;
  const isSigned = crl_this_update !== null && crl_next_update !== null;
  if (crl === null || crl_signed_number === null || crl_revision === null || !isSigned) return undefined;
  return {
    bytes: crl,
    number: crl_signed_number,
    revision: crl_revision,
    thisUpdateMs: crl_this_update.getTime(),
    nextUpdateMs: crl_next_update.getTime(),
  };
}

import type { Selectable } from 'kysely';
import type { RosterAttestation } from '#core/ledger/owner-attestation.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { ManagedRegistersTable, RegisterSchema } from '../../database/schema.ts';
import type { Draft } from '../creation/draft.ts';

type Db = Reader<RegisterSchema>;
type Tx = Transactor<RegisterSchema>;

/** A draft that waits for the owners' attestations. */
export interface OpenDraft {
  readonly draft: Draft;
  readonly specHash: Buffer;
  readonly expiresAt: Date;
}

/** A custom resource and the register that its UID is bound to. */
export interface Managed {
  readonly uid: string;
  readonly registerId: string;
  readonly organizationId: string;
  readonly purpose: 'General' | 'System';
  readonly open: OpenDraft | undefined;
  /** verified attestations of the draft */
  readonly attestations: readonly RosterAttestation[];
  /** set when the resource has released the register */
  readonly releasedAt: Date | undefined;
}

function managedOf(row: Selectable<ManagedRegistersTable>): Managed {
  const { draft, wish_hash: hash, expires_at: expiresAt } = row;
  const isOpen = draft !== null && hash !== null && expiresAt !== null;
  return {
    uid: row.uid,
    registerId: row.register_id,
    organizationId: row.organization_id,
    purpose: row.purpose as Managed['purpose'],
    open: isOpen ? { draft: draft as Draft, specHash: hash, expiresAt } : undefined,
    attestations: row.attestations as RosterAttestation[],
    releasedAt: row.released_at ?? undefined,
  };
}

/** Binds a UID to a register id once; a repetition changes nothing. */
export async function insertManaged(
  tx: Tx,
  binding: Pick<Managed, 'uid' | 'registerId' | 'organizationId' | 'purpose'> & { readonly at: Date },
): Promise<void> {
  await tx
    .insertInto('managed_registers')
    .values({
      uid: binding.uid,
      register_id: binding.registerId,
      organization_id: binding.organizationId,
      purpose: binding.purpose,
      created_at: binding.at,
    })
    .onConflict((conflict) => conflict.column('uid').doNothing())
    .execute();
}

export async function findManaged(db: Db, uid: string): Promise<Managed | undefined> {
  const rows = db.selectFrom('managed_registers').selectAll().where('uid', '=', uid);
  const row = await rows.executeTakeFirst();
  return row && managedOf(row);
}

/** The resource that currently manages a register. */
export async function findManager(db: Db, registerId: string): Promise<Managed | undefined> {
  const row = await db
    .selectFrom('managed_registers')
    .selectAll()
    .where('register_id', '=', registerId)
    .where('released_at', 'is', null)
    .executeTakeFirst();
  return row && managedOf(row);
}

/** Reads the row and locks it until the transaction ends. */
export async function lockManaged(tx: Tx, uid: string): Promise<Managed> {
  const row = await tx
    .selectFrom('managed_registers')
    .selectAll()
    .where('uid', '=', uid)
    .forUpdate()
    .executeTakeFirstOrThrow();
  return managedOf(row);
}

/** Replaces the draft; attestations of the previous one are discarded. */
export async function saveDraft(tx: Tx, uid: string, open: OpenDraft): Promise<void> {
  await tx
    .updateTable('managed_registers')
    .set({
      draft: JSON.stringify(open.draft),
      wish_hash: open.specHash,
      expires_at: open.expiresAt,
      attestations: '[]',
    })
    .where('uid', '=', uid)
    .execute();
}

export async function saveAttestations(
  tx: Tx,
  uid: string,
  attestations: readonly RosterAttestation[],
): Promise<void> {
  await tx
    .updateTable('managed_registers')
    .set({ attestations: JSON.stringify(attestations) })
    .where('uid', '=', uid)
    .execute();
}

/** Deletes the draft after its register has begun. */
export async function clearDraft(tx: Tx, uid: string): Promise<void> {
  await tx
    .updateTable('managed_registers')
    .set({ draft: null, wish_hash: null, expires_at: null, attestations: '[]' })
    .where('uid', '=', uid)
    .execute();
}

/** Releases the register of a resource permanently; returns whether it had one. */
export async function release(tx: Tx, uid: string, at: Date): Promise<boolean> {
  const released = await tx
    .updateTable('managed_registers')
    .set({ released_at: at, draft: null, wish_hash: null, expires_at: null, attestations: '[]' })
    .where('uid', '=', uid)
    .where('released_at', 'is', null)
    .returning('uid')
    .execute();
  return released.length === 1;
}

/** Whether a register has begun under an id, deleted or not. */
export async function hasBegun(db: Db, registerId: string): Promise<boolean> {
  const row = await db
    .selectFrom('registers')
    .select('register_no')
    .where('register_id', '=', registerId)
    .executeTakeFirst();
  return row !== undefined;
}

export async function genesisHash(db: Db, registerNo: number): Promise<string | undefined> {
  const row = await db
    .selectFrom('dockets')
    .select('hash')
    .where('register_no', '=', registerNo)
    .where('docket_number', '=', 0)
    .executeTakeFirst();
  return row?.hash;
}

/** A control transaction of the operator that may not be sealed yet. */
export interface SubmittedChange {
  readonly aggregate: string;
  readonly change: string;
  readonly txId: string;
  readonly submittedAt: Date;
}

export async function listChanges(db: Db, registerNo: number): Promise<SubmittedChange[]> {
  return db
    .selectFrom('managed_changes')
    .select(['aggregate', 'change', 'tx_id as txId', 'submitted_at as submittedAt'])
    .where('register_no', '=', registerNo)
    .orderBy('submitted_at')
    .execute();
}

/** Stores the latest change of an aggregate. */
export async function saveChange(tx: Tx, registerNo: number, change: SubmittedChange): Promise<void> {
  const row = { change: change.change, tx_id: change.txId, submitted_at: change.submittedAt };
  await tx
    .insertInto('managed_changes')
    .values({ register_no: registerNo, aggregate: change.aggregate, ...row })
    .onConflict((conflict) => conflict.columns(['register_no', 'aggregate']).doUpdateSet(row))
    .execute();
}

/** Deletes changes with a known outcome. */
export async function forgetChanges(tx: Tx, registerNo: number, txIds: readonly string[]): Promise<void> {
  if (txIds.length === 0) return;
  await tx
    .deleteFrom('managed_changes')
    .where('register_no', '=', registerNo)
    .where('tx_id', 'in', txIds)
    .execute();
}

/** Sets a purge date on a deletion that kept the data; an existing date is not postponed. */
export async function hastenPurge(tx: Tx, registerNo: number, purgeAfter: Date): Promise<void> {
  await tx
    .updateTable('registers')
    .set({ deletion_policy: 'Purge', purge_after: purgeAfter })
    .where('register_no', '=', registerNo)
    .where('deleted_at', 'is not', null)
    .where('purge_after', 'is', null)
    .where('purged_at', 'is', null)
    .execute();
}

import { type Selectable, sql } from 'kysely';
import type { Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import { type SignedTransaction, signedTransaction } from '../ledger/registers.ts';

type DB = CredentialDatabase;

/** A change of a status that a register does not have yet. */
export interface UnrecordedChange {
  readonly id: string;
  readonly credentialId: string;
  readonly registerId: string;
  readonly organizationId: string;
  readonly walletAddress: string;
  readonly payload: string;
  /** Signed once; undefined until then. */
  readonly transaction: SignedTransaction | undefined;
  readonly tries: number;
}

/** Writes a change in the transaction that makes it. */
export async function insertChange(
  tx: Transactor<DB>,
  change: Omit<UnrecordedChange, 'id' | 'tries'>,
  at: Date,
): Promise<void> {
  await tx
    .insertInto('unrecorded_changes')
    .values({
      credential_id: change.credentialId,
      register_id: change.registerId,
      organization_id: change.organizationId,
      wallet_address: change.walletAddress,
      payload: change.payload,
      transaction: change.transaction === undefined ? null : JSON.stringify(change.transaction),
      next_try_at: at,
    })
    .execute();
}

/**
 * Takes changes that are due until a time: each is one replica's. Of one credential the oldest alone, so that a register
 * has its changes in their order.
 */
export async function takeDue(
  tx: Transactor<DB>,
  { now, until, most }: { readonly now: Date; readonly until: Date; readonly most: number },
): Promise<readonly UnrecordedChange[]> {
  const due = tx
    .selectFrom('unrecorded_changes as change')
    .select('change.id')
    .where('change.next_try_at', '<=', now)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('unrecorded_changes as earlier')
            .select(sql`1`.as('one'))
            .whereRef('earlier.credential_id', '=', 'change.credential_id')
            .whereRef('earlier.id', '<', 'change.id'),
        ),
      ),
    )
    .orderBy('change.next_try_at')
    .limit(most)
    .forUpdate()
    .skipLocked();
  const rows = await tx
    .updateTable('unrecorded_changes')
    .set({ next_try_at: until })
    .where('id', 'in', due)
    .returningAll()
    .execute();
  return rows.map(changeOf);
}

/** Keeps the signed transaction of a change, before it is submitted: a repetition submits the same one. */
export async function keepTransaction(
  tx: Transactor<DB>,
  id: string,
  transaction: SignedTransaction | undefined,
): Promise<void> {
  await tx
    .updateTable('unrecorded_changes')
    .set({ transaction: transaction === undefined ? null : JSON.stringify(transaction) })
    .where('id', '=', id)
    .execute();
}

export async function tryAgain(
  tx: Transactor<DB>,
  id: string,
  { tries, at }: { readonly tries: number; readonly at: Date },
): Promise<void> {
  await tx.updateTable('unrecorded_changes').set({ tries, next_try_at: at }).where('id', '=', id).execute();
}

/** Forgets a change that its register has. */
export async function deleteChange(tx: Transactor<DB>, id: string): Promise<void> {
  await tx.deleteFrom('unrecorded_changes').where('id', '=', id).execute();
}

function changeOf(row: Selectable<DB['unrecorded_changes']>): UnrecordedChange {
  return {
    id: row.id,
    credentialId: row.credential_id,
    registerId: row.register_id,
    organizationId: row.organization_id,
    walletAddress: row.wallet_address,
    payload: row.payload,
    transaction: row.transaction === null ? undefined : signedTransaction.parse(row.transaction),
    tries: row.tries,
  };
}

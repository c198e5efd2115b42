import { type Selectable, sql } from 'kysely';
import { blueprintEvent } from '#core/events/blueprint-events.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import type { FileTables } from '../database/file-tables.ts';
import type { OperationFailure, OperationTable, OperationTables } from '../database/operation-tables.ts';
import { releaseUploads } from '../files/uploads/store.ts';
import {
  type LeasedOperation,
  type Operation,
  type OperationStatus,
  progress,
  type RunningStatus,
} from './operation.ts';

type DB = OperationTables;

/** Which replica works on an operation, and until when no other one does. */
export interface Lease {
  readonly owner: string;
  readonly now: Date;
  readonly until: Date;
}

/** What a committed draft says of its transaction. */
interface SavedDraft {
  readonly draft: Buffer;
  readonly recipientCount: number;
  readonly warnings: readonly string[];
}

export async function insertOperation(
  tx: Transactor<DB>,
  operation: Pick<
    Operation,
    | 'id'
    | 'kind'
    | 'instanceId'
    | 'registerId'
    | 'blueprintId'
    | 'actionId'
    | 'actionTitle'
    | 'wallet'
    | 'owner'
    | 'organizationId'
  > & {
    readonly sealedInput: Buffer;
    readonly sealedDelegation: Buffer;
    readonly delegationExpiresAt: Date;
  },
  lease: Lease,
): Promise<void> {
  const { percent, currentStep } = progress.Pending;
  await tx
    .insertInto('operations')
    .values({
      id: operation.id,
      kind: operation.kind,
      instance_id: operation.instanceId,
      register_id: operation.registerId,
      blueprint_id: operation.blueprintId,
      action_id: operation.actionId,
      action_title: operation.actionTitle,
      wallet: operation.wallet,
      owner: operation.owner,
      organization_id: operation.organizationId ?? null,
      status: 'Pending',
      current_step: currentStep,
      percent,
      recipient_count: 0,
      sealed_input: operation.sealedInput,
      sealed_delegation: operation.sealedDelegation,
      delegation_expires_at: operation.delegationExpiresAt,
      is_accepted: false,
      forks: 0,
      attempts: 0,
      lease_owner: lease.owner,
      lease_until: lease.until,
      next_attempt_at: lease.now,
      created_at: lease.now,
      updated_at: lease.now,
    })
    .execute();
}

function toOperation(row: Selectable<OperationTable>): LeasedOperation {
  return {
    id: row.id,
    kind: row.kind === 'Rejection' ? 'Rejection' : 'Action',
    instanceId: row.instance_id,
    registerId: row.register_id,
    blueprintId: row.blueprint_id,
    actionId: row.action_id,
    actionTitle: row.action_title,
    wallet: row.wallet,
    owner: row.owner,
    organizationId: row.organization_id ?? undefined,
    status: row.status as OperationStatus,
    currentStep: row.current_step,
    percent: row.percent,
    recipientCount: row.recipient_count,
    warnings: row.warnings ?? [],
    txId: row.tx_id ?? undefined,
    isAccepted: row.is_accepted,
    failure: row.error ?? undefined,
    createdAt: row.created_at,
    completedAt: row.completed_at ?? undefined,
    sealedInput: row.sealed_input ?? undefined,
    sealedDelegation: row.sealed_delegation ?? undefined,
    delegationExpiresAt: row.delegation_expires_at,
    draft: row.draft ?? undefined,
    submission: row.submission ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    forks: row.forks,
    attempts: row.attempts,
  };
}

export async function findOperation(db: Reader<DB>, id: string): Promise<LeasedOperation | undefined> {
  const row = await db.selectFrom('operations').selectAll().where('id', '=', id).executeTakeFirst();
  return row && toOperation(row);
}

/** Operations of a wallet, newest first. */
export async function listOperations(
  db: Reader<DB>,
  wallet: string,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<{ readonly items: readonly Operation[]; readonly total: number }> {
  const own = db.selectFrom('operations').where('wallet', '=', wallet);
  const { total } = await own.select(sql<number>`count(*)::int`.as('total')).executeTakeFirstOrThrow();
  const rows = await own
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .offset(offset)
    .limit(limit)
    .execute();
  return { items: rows.map(toOperation), total };
}

/** Leases running operations that are due and that no replica works on. */
export async function leaseDue(
  tx: Transactor<DB>,
  { owner, now, until }: Lease,
  limit: number,
): Promise<readonly LeasedOperation[]> {
  const rows = await tx
    .updateTable('operations')
    .set({ lease_owner: owner, lease_until: until })
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('operations')
        .select('id')
        .where('completed_at', 'is', null)
        .where('next_attempt_at', '<=', now)
        .where((or) => or.or([or('lease_until', 'is', null), or('lease_until', '<=', now)]))
        .orderBy('next_attempt_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute();
  return rows.map(toOperation);
}

/** Prolongs the lease of a running operation, unless it was lost. */
export async function renewLease(tx: Transactor<DB>, id: string, { owner, until }: Lease): Promise<void> {
  await tx
    .updateTable('operations')
    .set({ lease_until: until })
    .where('id', '=', id)
    .where('lease_owner', '=', owner)
    .where('completed_at', 'is', null)
    .execute();
}

/**
 * Changes an operation that the owner of the lease works on, and prolongs the lease; undefined when it lost the lease or
 * the operation has ended.
 */
async function change(
  tx: Transactor<DB>,
  id: string,
  { owner, now, until }: Lease,
  values: Partial<Record<keyof OperationTable, unknown>>,
): Promise<LeasedOperation | undefined> {
  const row = await tx
    .updateTable('operations')
    .set({ updated_at: now, lease_until: until, ...values } as object)
    .where('id', '=', id)
    .where('lease_owner', '=', owner)
    .where('completed_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  return row && toOperation(row);
}

export async function moveTo(tx: Transactor<DB>, id: string, lease: Lease, status: RunningStatus) {
  const { currentStep, percent } = progress[status];
  const moved = await change(tx, id, lease, { status, current_step: currentStep, percent });
  if (moved !== undefined && status === 'Encrypting') await tell(tx, moved, 'Encrypting');
  return moved;
}

/** Commits the transaction with all its randomness, before it is signed. */
export async function saveDraft(tx: Transactor<DB>, id: string, lease: Lease, saved: SavedDraft) {
  const { currentStep, percent } = progress.BuildingTransaction;
  return change(tx, id, lease, {
    status: 'BuildingTransaction',
    current_step: currentStep,
    percent,
    draft: saved.draft,
    recipient_count: saved.recipientCount,
    warnings: JSON.stringify(saved.warnings),
  });
}

/** Commits the signed transaction, before it is sent. */
export async function saveSubmission(
  tx: Transactor<DB>,
  id: string,
  lease: Lease,
  saved: { readonly submission: Buffer; readonly txId: string; readonly expiresAt: Date },
) {
  const { currentStep, percent } = progress.Submitting;
  return change(tx, id, lease, {
    status: 'Submitting',
    current_step: currentStep,
    percent,
    submission: saved.submission,
    tx_id: saved.txId,
    expires_at: saved.expiresAt,
  });
}

export async function saveAcceptance(tx: Transactor<DB>, id: string, lease: Lease) {
  return change(tx, id, lease, { is_accepted: true, attempts: 0 });
}

/** Forgets a transaction that another step was before: the input is evaluated anew. */
export async function startAnew(tx: Transactor<DB>, id: string, lease: Lease, forks: number) {
  const { currentStep, percent } = progress.ResolvingKeys;
  return change(tx, id, lease, {
    status: 'ResolvingKeys',
    current_step: currentStep,
    percent,
    draft: null,
    submission: null,
    tx_id: null,
    expires_at: null,
    is_accepted: false,
    forks,
  });
}

/** Gives the lease back; the operation is due again at a moment. */
export async function postpone(
  tx: Transactor<DB>,
  id: string,
  lease: Lease,
  { attempts, nextAt }: { readonly attempts: number; readonly nextAt: Date },
): Promise<void> {
  await change(tx, id, lease, { attempts, next_attempt_at: nextAt, lease_until: null });
}

const wiped = { sealed_input: null, sealed_delegation: null, draft: null, lease_until: null } as const;

export async function complete(tx: Transactor<DB>, id: string, lease: Lease) {
  const { currentStep, percent } = progress.Complete;
  const values = { status: 'Complete', current_step: currentStep, percent, is_accepted: true };
  const done = await change(tx, id, lease, { ...wiped, ...values, completed_at: lease.now });
  if (done !== undefined) await tell(tx, done, 'Encrypted');
  return done;
}

/** Ends an operation; it stays at the step that failed, and its files are no longer kept for it. */
export async function fail(
  tx: Transactor<DB & FileTables>,
  id: string,
  lease: Lease,
  error: Pick<OperationFailure, 'code' | 'message'>,
) {
  const failure = sql`jsonb_build_object('code', ${error.code}::text, 'message', ${error.message}::text,
    'step', current_step)`;
  const values = { status: 'Failed', error: failure, submission: null, completed_at: lease.now };
  const failed = await change(tx, id, lease, { ...wiped, ...values });
  if (failed === undefined) return undefined;
  await releaseUploads(tx, id, lease.now);
  await tell(tx, failed, 'Failed');
  return failed;
}

/** Deletes operations that ended before a moment. */
export async function purgeOperations(tx: Transactor<DB>, before: Date): Promise<void> {
  await tx.deleteFrom('operations').where('completed_at', '<', before).execute();
}

/** Whether the transaction that left an operation as it is has written an event. */
export function hasEvent({ status, completedAt }: Pick<Operation, 'status' | 'completedAt'>): boolean {
  return status === 'Encrypting' || completedAt !== undefined;
}

async function tell(
  tx: Transactor<DB>,
  { id, wallet }: Pick<Operation, 'id' | 'wallet'>,
  step: 'Encrypting' | 'Encrypted' | 'Failed',
): Promise<void> {
  await appendEvent(tx, blueprintEvent('OperationChanged', { wallet, operationId: id, progress: step }));
}

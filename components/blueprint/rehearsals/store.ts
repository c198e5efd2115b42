import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { RehearsalNote, RehearsalTable } from '../database/rehearsal-tables.ts';
import type { BlueprintDatabase } from '../database/schema.ts';

type DB = BlueprintDatabase;

export const rehearsalStatuses = ['InProgress', 'Passed', 'Failed', 'Abandoned'] as const;
export type RehearsalStatus = (typeof rehearsalStatuses)[number];

/** Where a rehearsal runs. */
export interface Stage {
  readonly registerId: string;
  readonly pin: string;
  readonly instanceId: string;
  /** By participant. */
  readonly wallets: Readonly<Record<string, string>>;
}

export interface Rehearsal {
  readonly id: string;
  readonly organizationId: string;
  readonly draftId: string;
  readonly blueprintId: string;
  readonly execDefHash: string;
  readonly status: RehearsalStatus;
  readonly startedBy: string;
  readonly roles: number;
  /** Undefined while it is being prepared. */
  readonly stage: Stage | undefined;
  readonly actingRole: string | undefined;
  readonly actingSince: number;
  readonly notes: readonly RehearsalNote[];
  readonly startedAt: Date;
  readonly endedAt: Date | undefined;
}

/** The last ones are kept. */
const mostNotes = 200;

function toRehearsal(row: Selectable<RehearsalTable>): Rehearsal {
  const { register_id, publication_tx_id, instance_id, wallets } = row;
  const isPrepared =
    register_id !== null && publication_tx_id !== null && instance_id !== null && wallets !== null;
  return {
    id: row.id,
    organizationId: row.organization_id,
    draftId: row.draft_id,
    blueprintId: row.blueprint_id,
    execDefHash: row.exec_def_hash,
    status: row.status as RehearsalStatus,
    startedBy: row.started_by,
    roles: row.roles,
    stage: isPrepared
      ? { registerId: register_id, pin: publication_tx_id, instanceId: instance_id, wallets }
      : undefined,
    actingRole: row.acting_role ?? undefined,
    actingSince: row.acting_since,
    notes: row.notes,
    startedAt: row.started_at,
    endedAt: row.ended_at ?? undefined,
  };
}

export async function findRehearsal(db: Reader<DB>, id: string): Promise<Rehearsal | undefined> {
  const row = await db.selectFrom('rehearsals').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : toRehearsal(row);
}

export async function countUnderWay(db: Reader<DB>, organizationId: string): Promise<number> {
  const row = await db
    .selectFrom('rehearsals')
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .where('organization_id', '=', organizationId)
    .where('status', '=', 'InProgress')
    .executeTakeFirst();
  return Number(row?.total ?? 0);
}

interface NewRehearsal
  extends Pick<
    Rehearsal,
    'id' | 'organizationId' | 'draftId' | 'blueprintId' | 'execDefHash' | 'startedBy' | 'roles' | 'startedAt'
  > {
  readonly note: RehearsalNote;
}

export async function insertRehearsal(tx: Transactor<DB>, rehearsal: NewRehearsal): Promise<void> {
  await tx
    .insertInto('rehearsals')
    .values({
      id: rehearsal.id,
      organization_id: rehearsal.organizationId,
      draft_id: rehearsal.draftId,
      blueprint_id: rehearsal.blueprintId,
      exec_def_hash: rehearsal.execDefHash,
      status: 'InProgress',
      started_by: rehearsal.startedBy,
      roles: rehearsal.roles,
      acting_since: 0,
      notes: JSON.stringify([rehearsal.note]),
      started_at: rehearsal.startedAt,
      touched_at: rehearsal.startedAt,
    })
    .execute();
}

/** The rehearsal of a draft that a person has under way; it stays as it is until the transaction ends. */
export async function lockUnderWay(
  tx: Transactor<DB>,
  of: Pick<Rehearsal, 'organizationId' | 'draftId' | 'startedBy'>,
): Promise<Rehearsal | undefined> {
  const row = await tx
    .selectFrom('rehearsals')
    .selectAll()
    .where('organization_id', '=', of.organizationId)
    .where('draft_id', '=', of.draftId)
    .where('started_by', '=', of.startedBy)
    .where('status', '=', 'InProgress')
    .forUpdate()
    .executeTakeFirst();
  return row === undefined ? undefined : toRehearsal(row);
}

/** Stores where a rehearsal runs; false when it has ended meanwhile. */
export async function storeStage(tx: Transactor<DB>, id: string, stage: Stage): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('rehearsals')
    .set({
      register_id: stage.registerId,
      publication_tx_id: stage.pin,
      instance_id: stage.instanceId,
      wallets: JSON.stringify(stage.wallets),
    })
    .where('id', '=', id)
    .where('status', '=', 'InProgress')
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Chooses the acting role; false when the rehearsal has ended. */
export async function storeRole(
  tx: Transactor<DB>,
  id: string,
  { role, since, at }: { readonly role: string; readonly since: number; readonly at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('rehearsals')
    .set({ acting_role: role, acting_since: since, touched_at: at })
    .where('id', '=', id)
    .where('status', '=', 'InProgress')
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Adds a note, and keeps the rehearsal from being abandoned as idle. */
export async function addNote(tx: Transactor<DB>, id: string, note: RehearsalNote): Promise<void> {
  const row = await tx
    .selectFrom('rehearsals')
    .select('notes')
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  const notes = [...(row?.notes ?? []), note].slice(-mostNotes);
  await touch(tx, id, new Date(note.at), notes);
}

export async function touch(
  tx: Transactor<DB>,
  id: string,
  at: Date,
  notes?: readonly RehearsalNote[],
): Promise<void> {
  await tx
    .updateTable('rehearsals')
    .set({ touched_at: at, ...(notes !== undefined && { notes: JSON.stringify(notes) }) })
    .where('id', '=', id)
    .execute();
}

/** Ends a rehearsal that is under way, with its pass when it passed; false when it has ended before. */
export async function endRehearsal(
  tx: Transactor<DB>,
  rehearsal: Rehearsal,
  end: {
    readonly status: Exclude<RehearsalStatus, 'InProgress'>;
    readonly passId: string;
    readonly at: Date;
  },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('rehearsals')
    .set({ status: end.status, ended_at: end.at })
    .where('id', '=', rehearsal.id)
    .where('status', '=', 'InProgress')
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) return false;
  if (end.status === 'Passed')
    await tx
      .insertInto('rehearsal_passes')
      .values({
        id: end.passId,
        organization_id: rehearsal.organizationId,
        blueprint_id: rehearsal.blueprintId,
        exec_def_hash: rehearsal.execDefHash,
        rehearsal_id: rehearsal.id,
        passed_at: end.at,
        passed_by: rehearsal.startedBy,
      })
      .execute();
  return true;
}

/** Remembers when the keys of a rehearsal were erased; null: they have to be erased again. */
export async function storeErased(tx: Transactor<DB>, id: string, at: Date | null): Promise<void> {
  await tx.updateTable('rehearsals').set({ wallets_erased_at: at }).where('id', '=', id).execute();
}

/** Those under way whose preparation or user has left them, before moments; the oldest 100. */
export async function listLeft(
  db: Reader<DB>,
  before: { readonly prepared: Date; readonly unprepared: Date },
): Promise<readonly Rehearsal[]> {
  const rows = await db
    .selectFrom('rehearsals')
    .selectAll()
    .where('status', '=', 'InProgress')
    .where((eb) =>
      eb.or([
        eb('touched_at', '<', before.prepared),
        eb.and([eb('instance_id', 'is', null), eb('touched_at', '<', before.unprepared)]),
      ]),
    )
    .orderBy('touched_at')
    .limit(100)
    .execute();
  return rows.map(toRehearsal);
}

/** Those under way whose instance has ended, at most 100. */
export async function listWalked(db: Reader<DB>): Promise<readonly Rehearsal[]> {
  const rows = await db
    .selectFrom('rehearsals as r')
    .innerJoin('instances as i', (join) =>
      join.onRef('i.register_id', '=', 'r.register_id').onRef('i.instance_id', '=', 'r.instance_id'),
    )
    .selectAll('r')
    .where('r.status', '=', 'InProgress')
    .where('i.state', '<>', 'Active')
    .limit(100)
    .execute();
  return rows.map(toRehearsal);
}

/** Ended ones whose wallets still have keys, the oldest 100. */
export async function listUnerased(db: Reader<DB>): Promise<readonly Rehearsal[]> {
  const rows = await db
    .selectFrom('rehearsals')
    .selectAll()
    .where('status', '<>', 'InProgress')
    .where('wallets_erased_at', 'is', null)
    .orderBy('touched_at')
    .limit(100)
    .execute();
  return rows.map(toRehearsal);
}

export async function findSandbox(db: Reader<DB>, organizationId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('sandboxes')
    .select('register_id')
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  return row?.register_id;
}

/** Remembers the sandbox of an organisation; false when it is known already. */
export async function insertSandbox(
  tx: Transactor<DB>,
  sandbox: { readonly organizationId: string; readonly registerId: string; readonly at: Date },
): Promise<boolean> {
  const row = await tx
    .insertInto('sandboxes')
    .values({
      organization_id: sandbox.organizationId,
      register_id: sandbox.registerId,
      created_at: sandbox.at,
    })
    .onConflict((conflict) => conflict.column('organization_id').doNothing())
    .returning('register_id')
    .executeTakeFirst();
  return row !== undefined;
}

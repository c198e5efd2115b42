import { type SqlBool, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { BlueprintDatabase, DraftSource } from '../../database/schema.ts';
import type { DraftStatus } from './schemas.ts';

/** Whose drafts a caller sees: those of one organisation, or all. */
export interface DraftScope {
  readonly organizationId?: string | undefined;
}

/** What a definition says of itself, in columns. */
interface DraftContent {
  readonly blueprintId: string;
  readonly title: string;
  readonly description: string;
  readonly participantCount: number;
  readonly actionCount: number;
  /** JSON text. */
  readonly definition: string;
  readonly execDefHash: string;
}

export interface Draft extends DraftContent {
  readonly draftNo: string;
  readonly organizationId: string;
  readonly id: string;
  readonly revision: number;
  readonly source: DraftSource | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

interface NewDraft extends DraftContent {
  readonly organizationId: string;
  readonly id: string;
  readonly source?: DraftSource | undefined;
  readonly at: Date;
}

/** A draft in a list. */
export interface DraftItem extends Pick<Draft, 'id' | 'blueprintId' | 'title' | 'description'> {
  readonly status: DraftStatus;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly participantCount: number;
  readonly actionCount: number;
  readonly latestPublicationTxId: string | undefined;
}

/**
 * The draft of an id. Ids are unique in an organisation; of all organisations, one that several have names none.
 */
export async function findDraft(
  db: Reader<BlueprintDatabase>,
  { organizationId }: DraftScope,
  id: string,
): Promise<Draft | undefined> {
  const rows = await db
    .selectFrom('drafts')
    .selectAll()
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .$if(organizationId !== undefined, (query) => query.where('organization_id', '=', organizationId ?? ''))
    .limit(2)
    .execute();
  const [row, other] = rows;
  if (row === undefined || other !== undefined) return undefined;
  return {
    draftNo: row.draft_no,
    organizationId: row.organization_id,
    id: row.id,
    blueprintId: row.blueprint_id,
    title: row.title,
    description: row.description,
    participantCount: row.participant_count,
    actionCount: row.action_count,
    definition: row.definition,
    execDefHash: row.exec_def_hash,
    revision: row.revision,
    source: row.source ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

const columnsOf = (content: DraftContent) => ({
  title: content.title,
  description: content.description,
  participant_count: content.participantCount,
  action_count: content.actionCount,
  definition: content.definition,
  exec_def_hash: content.execDefHash,
});

/** Stores a draft; false when its id is taken in its organisation. */
export async function insertDraft(tx: Transactor<BlueprintDatabase>, draft: NewDraft): Promise<boolean> {
  const { source, at } = draft;
  const result = await tx
    .insertInto('drafts')
    .values({
      ...columnsOf(draft),
      organization_id: draft.organizationId,
      id: draft.id,
      blueprint_id: draft.blueprintId,
      revision: 1,
      source: source === undefined ? null : JSON.stringify(source),
      created_at: at,
      updated_at: at,
      deleted_at: null,
    })
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'id']).where('deleted_at', 'is', null).doNothing(),
    )
    .executeTakeFirst();
  return result.numInsertedOrUpdatedRows === 1n;
}

/** Number of drafts of an organisation that are not deleted; locks the organisation's drafts against other inserts. */
export async function countDrafts(
  tx: Transactor<BlueprintDatabase>,
  organizationId: string,
): Promise<number> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`drafts ${organizationId}`}, 0))`.execute(tx);
  const { count } = await tx
    .selectFrom('drafts')
    .select((each) => each.fn.countAll<string>().as('count'))
    .where('organization_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

interface Change {
  readonly draftNo: string;
  /** The revision that the change is made to; any when absent. */
  readonly revision?: number | undefined;
  readonly at: Date;
}

/** Replaces the content of a draft; returns its new revision, undefined when it is another one or deleted. */
export async function updateDraft(
  tx: Transactor<BlueprintDatabase>,
  { draftNo, revision, at }: Change,
  content: DraftContent,
): Promise<number | undefined> {
  const row = await tx
    .updateTable('drafts')
    .set((each) => ({ ...columnsOf(content), updated_at: at, revision: each('revision', '+', 1) }))
    .where('draft_no', '=', draftNo)
    .where('deleted_at', 'is', null)
    .$if(revision !== undefined, (query) => query.where('revision', '=', revision ?? 0))
    .returning('revision')
    .executeTakeFirst();
  return row?.revision;
}

/** Marks a draft as deleted; false when it is another revision or deleted already. */
export async function deleteDraft(
  tx: Transactor<BlueprintDatabase>,
  { draftNo, revision, at }: Change,
): Promise<boolean> {
  const result = await tx
    .updateTable('drafts')
    .set({ deleted_at: at })
    .where('draft_no', '=', draftNo)
    .where('deleted_at', 'is', null)
    .$if(revision !== undefined, (query) => query.where('revision', '=', revision ?? 0))
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

interface DraftQuery extends DraftScope {
  readonly search?: string | undefined;
  readonly status?: DraftStatus | undefined;
  readonly offset: number;
  readonly limit: number;
}

interface ItemRow {
  readonly id: string;
  readonly blueprint_id: string;
  readonly title: string;
  readonly description: string;
  readonly participant_count: number;
  readonly action_count: number;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly is_archived: boolean;
  readonly latest: string | null;
  readonly total: string;
}

/** A page of drafts, newest first; deleted ones are only listed as Archived. */
export async function listDrafts(
  db: Reader<BlueprintDatabase>,
  query: DraftQuery,
): Promise<{ readonly items: readonly DraftItem[]; readonly total: number }> {
  const { organizationId, search, status, offset, limit } = query;
  const conditions = [
    status === 'Archived' ? sql<SqlBool>`d.deleted_at is not null` : sql<SqlBool>`d.deleted_at is null`,
    ...(organizationId === undefined ? [] : [sql<SqlBool>`d.organization_id = ${organizationId}`]),
    ...(search === undefined ? [] : [matches(search)]),
    ...(status === 'Draft' ? [sql<SqlBool>`p.publication_tx_id is null`] : []),
    ...(status === 'Published' ? [sql<SqlBool>`p.publication_tx_id is not null`] : []),
  ];
  const { rows } = await sql<ItemRow>`
    select d.id, d.blueprint_id, d.title, d.description, d.participant_count, d.action_count,
      d.created_at, d.updated_at, d.deleted_at is not null as is_archived, p.publication_tx_id as latest,
      count(*) over () as total
    from drafts d left join lateral (
      select s.publication_tx_id from submitted_publications s
      where s.organization_id = d.organization_id and s.blueprint_id = d.blueprint_id
      order by s.published_at desc, s.publication_tx_id limit 1) p on true
    where ${sql.join(conditions, sql` and `)}
    order by d.created_at desc, d.draft_no desc
    offset ${offset} limit ${limit}`.execute(db);
  return {
    items: rows.map(itemOf),
    total: Number(rows[0]?.total ?? (offset === 0 ? 0 : await totalOf(db, query))),
  };
}

/** The total of a page behind the last one, which has no row to tell it. */
async function totalOf(db: Reader<BlueprintDatabase>, query: DraftQuery): Promise<number> {
  return (await listDrafts(db, { ...query, offset: 0, limit: 1 })).total;
}

function matches(search: string) {
  const pattern = `%${search.replaceAll(/[\\%_]/g, (sign) => `\\${sign}`)}%`;
  return sql<SqlBool>`(d.title ilike ${pattern} or d.description ilike ${pattern} or d.id ilike ${pattern})`;
}

function itemOf(row: ItemRow): DraftItem {
  const published = row.latest === null ? 'Draft' : 'Published';
  return {
    id: row.id,
    blueprintId: row.blueprint_id,
    title: row.title,
    description: row.description,
    status: row.is_archived ? 'Archived' : published,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    participantCount: row.participant_count,
    actionCount: row.action_count,
    latestPublicationTxId: row.latest ?? undefined,
  };
}

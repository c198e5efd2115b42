import { type Selectable, sql } from 'kysely';
import type { PoolClient } from 'pg';
import {
  type BlueprintVersion,
  CHANGE_TYPES,
  type ChangeType,
  nextVersion,
} from '#core/blueprint/changes.ts';
import type { Reader } from '#kit/db/db.ts';
import { statement } from '#kit/db/statement.ts';
import type { BlueprintPublicationsTable, RegisterSchema } from '../../database/schema.ts';
import { transactionAt } from '../../ledger/values/store.ts';
import { metadataOf, publisherOf, type SealedPublication, titleOf } from './record.ts';

type Db = Reader<RegisterSchema>;

/** One publication of a blueprint, as the register numbers it. */
export interface PublishedVersion extends BlueprintVersion {
  readonly blueprintId: string;
  /** number among the publications of the blueprint, from 1 */
  readonly ordinal: number;
  readonly txId: string;
  readonly docketNumber: number;
  readonly position: number;
  readonly changeType: ChangeType;
  readonly contentHash: string;
  readonly execDefHash: string;
  readonly structuralHash: string;
  readonly title: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly publishedBy: string;
  readonly publishedAt: string;
}

/** How a request names a version. */
export type VersionKey =
  | BlueprintVersion
  | { readonly ordinal: number }
  | { readonly txId: string }
  | 'latest';

function versionOf(row: Selectable<BlueprintPublicationsTable>): PublishedVersion {
  return {
    blueprintId: row.blueprint_id,
    ordinal: row.ordinal,
    txId: row.tx_id.toString('hex'),
    docketNumber: row.docket_number,
    position: row.position,
    major: row.major,
    minor: row.minor,
    changeType: CHANGE_TYPES.find((type) => type === row.change_type) ?? 'structural',
    contentHash: row.content_hash,
    execDefHash: row.exec_def_hash,
    structuralHash: row.structural_hash,
    title: row.title,
    metadata: row.metadata,
    publishedBy: row.published_by,
    publishedAt: row.published_at,
  };
}

interface Latest extends BlueprintVersion {
  readonly ordinal: number;
  readonly structural_hash: string;
}

interface OfBlueprint {
  readonly registerNo: number;
  readonly blueprintId: string;
}

const takeLatest = statement<OfBlueprint>(`
  update blueprint_publications set is_latest = false
  where register_no = :registerNo and blueprint_id = :blueprintId and is_latest
  returning ordinal, major, minor, structural_hash`);

interface PublicationRow extends OfBlueprint, BlueprintVersion {
  readonly ordinal: number;
  readonly txId: Buffer;
  readonly docketNumber: number;
  readonly position: number;
  readonly changeType: ChangeType;
  readonly contentHash: string;
  readonly execDefHash: string;
  readonly structuralHash: string;
  readonly title: string;
  readonly metadata: string;
  readonly publishedBy: string;
  readonly publishedAt: string;
}

const insertLatest = statement<PublicationRow>(`
  insert into blueprint_publications (register_no, blueprint_id, ordinal, tx_id, docket_number, position, major, minor,
    change_type, content_hash, exec_def_hash, structural_hash, title, metadata, published_by, published_at, is_latest)
  values (:registerNo, :blueprintId, :ordinal, :txId, :docketNumber, :position, :major, :minor, :changeType,
    :contentHash, :execDefHash, :structuralHash, :title, :metadata::jsonb, :publishedBy, :publishedAt, true)`);

async function writeOne(
  client: PoolClient,
  at: { readonly registerNo: number; readonly docketNumber: number },
  { publication, position, publishedAt }: SealedPublication,
): Promise<void> {
  const { blueprintId, txId, contentHash, execDefHash, structuralHash } = publication;
  const { registerNo } = at;
  const { rows } = await client.query<Latest>(takeLatest({ registerNo, blueprintId }));
  const [previous] = rows;
  const changeType = previous?.structural_hash === structuralHash ? 'documentation' : 'structural';
  const row: PublicationRow = {
    ...at,
    ...nextVersion(previous, changeType),
    blueprintId,
    ordinal: (previous?.ordinal ?? 0) + 1,
    txId: Buffer.from(txId, 'hex'),
    position,
    changeType,
    contentHash,
    execDefHash,
    structuralHash,
    title: titleOf(publication),
    metadata: JSON.stringify(metadataOf(publication)),
    publishedBy: publisherOf(publication),
    publishedAt,
  };
  await client.query(insertLatest(row));
}

/** Numbers the publications of a docket, in the transaction that stores the docket and has locked the head. */
export async function writePublications(
  client: PoolClient,
  at: { readonly registerNo: number; readonly docketNumber: number },
  publications: readonly SealedPublication[],
): Promise<void> {
  for (const one of publications) await writeOne(client, at, one);
}

/** The latest version of each blueprint of a register, ordered by id. */
export async function listBlueprints(
  db: Db,
  registerNo: number,
  window: { readonly offset: number; readonly limit: number },
): Promise<{ items: PublishedVersion[]; total: number }> {
  const rows = db
    .selectFrom('blueprint_publications')
    .where('register_no', '=', registerNo)
    .where('is_latest', '=', true);
  const items = await rows
    .selectAll()
    .orderBy(sql`blueprint_id collate "C"`)
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  return { items: items.map(versionOf), total: await countBlueprints(db, registerNo) };
}

export async function countBlueprints(db: Db, registerNo: number): Promise<number> {
  const counted = await db
    .selectFrom('blueprint_publications')
    .where('register_no', '=', registerNo)
    .where('is_latest', '=', true)
    .select(sql<number>`count(*)::int`.as('total'))
    .executeTakeFirst();
  return counted?.total ?? 0;
}

/** Versions of one blueprint, newest first. */
export async function listVersions(
  db: Db,
  of: { readonly registerNo: number; readonly blueprintId: string },
  window: { readonly offset: number; readonly limit: number },
): Promise<PublishedVersion[]> {
  const rows = await db
    .selectFrom('blueprint_publications')
    .selectAll()
    .where('register_no', '=', of.registerNo)
    .where('blueprint_id', '=', of.blueprintId)
    .orderBy('ordinal', 'desc')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  return rows.map(versionOf);
}

/** Publications in the order of the ledger behind a position; of one blueprint when it is given. */
export async function versionsAfter(
  db: Db,
  of: { readonly registerNo: number; readonly blueprintId: string | undefined },
  after: { readonly docketNumber: number; readonly position: number },
  limit: number,
): Promise<PublishedVersion[]> {
  let rows = db.selectFrom('blueprint_publications').where('register_no', '=', of.registerNo);
  if (of.blueprintId !== undefined) rows = rows.where('blueprint_id', '=', of.blueprintId);
  const { docketNumber, position } = after;
  const found = await rows
    .selectAll()
    .where(sql<boolean>`(docket_number, position) > (${docketNumber}::bigint, ${position}::bigint)`)
    .orderBy('docket_number')
    .orderBy('position')
    .limit(limit)
    .execute();
  return found.map(versionOf);
}

export async function findVersion(
  db: Db,
  of: { readonly registerNo: number; readonly blueprintId: string },
  key: VersionKey,
): Promise<PublishedVersion | undefined> {
  let rows = db
    .selectFrom('blueprint_publications')
    .selectAll()
    .where('register_no', '=', of.registerNo)
    .where('blueprint_id', '=', of.blueprintId);
  if (key === 'latest') rows = rows.where('is_latest', '=', true);
  else if ('ordinal' in key) rows = rows.where('ordinal', '=', key.ordinal);
  else if ('txId' in key) rows = rows.where('tx_id', '=', Buffer.from(key.txId, 'hex'));
  else rows = rows.where('major', '=', key.major).where('minor', '=', key.minor);
  const row = await rows.executeTakeFirst();
  return row && versionOf(row);
}

/** The publication with a transaction id. */
export async function findPublished(
  db: Db,
  registerNo: number,
  txId: string,
): Promise<PublishedVersion | undefined> {
  const row = await db
    .selectFrom('blueprint_publications')
    .selectAll()
    .where('register_no', '=', registerNo)
    .where('tx_id', '=', Buffer.from(txId, 'hex'))
    .executeTakeFirst();
  return row && versionOf(row);
}

/** The payload bytes of a version; undefined once its docket is purged. */
export async function findPayload(
  db: Db,
  registerNo: number,
  { docketNumber, position }: Pick<PublishedVersion, 'docketNumber' | 'position'>,
): Promise<Buffer | undefined> {
  const stored = await transactionAt(db, { registerNo, docketNumber, position });
  if (stored !== undefined) return stored.payload;
  // a docket that was stored before values existed
  const row = await db
    .selectFrom('transaction_rows')
    .select('payload')
    .where('register_no', '=', registerNo)
    .where('docket_number', '=', docketNumber)
    .where('position', '=', position)
    .executeTakeFirst();
  return row?.payload ?? undefined;
}

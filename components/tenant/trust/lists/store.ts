import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Snapshot } from './snapshot.ts';
import type { Anchor, ListContent } from './values/list.ts';

type DB = TenantDatabase;
type Row = Selectable<Omit<DB['trust_list_snapshots'], 'document' | 'format'>>;

/** Serialises the changes of one list until the transaction ends. */
export async function lockTrustList(tx: Transactor<DB>, trustListId: string): Promise<void> {
  const name = `chancery.tenant.trust-list.${trustListId}`;
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx);
}

export async function findActive(db: Reader<DB>, trustListId: string): Promise<Snapshot | undefined> {
  const row = await snapshots(db)
    .where('trust_list_id', '=', trustListId)
    .where('status', '=', 'Active')
    .executeTakeFirst();
  return row && toSnapshot(row);
}

/** The active version of every list, by id. */
export async function listActive(db: Reader<DB>): Promise<readonly Snapshot[]> {
  const rows = await snapshots(db).where('status', '=', 'Active').orderBy('trust_list_id').execute();
  return rows.map(toSnapshot);
}

/** All versions of a list, the newest first. */
export async function listVersions(db: Reader<DB>, trustListId: string): Promise<readonly Snapshot[]> {
  const rows = await snapshots(db)
    .where('trust_list_id', '=', trustListId)
    .orderBy('sequence_number', 'desc')
    .execute();
  return rows.map(toSnapshot);
}

export async function listAnchors(
  db: Reader<DB>,
  { trustListId, sequenceNumber }: Pick<Snapshot, 'trustListId' | 'sequenceNumber'>,
): Promise<readonly Anchor[]> {
  const rows = await db
    .selectFrom('trust_list_anchors')
    .selectAll()
    .where('trust_list_id', '=', trustListId)
    .where('sequence_number', '=', sequenceNumber)
    .orderBy('position')
    .execute();
  return rows.map((row) => ({
    der: row.der,
    thumbprint: row.thumbprint,
    subjectDn: row.subject_dn,
    serviceType: row.service_type,
    serviceStatus: row.service_status ?? undefined,
    notBeforeMs: row.not_before.getTime(),
    notAfterMs: row.not_after.getTime(),
  }));
}

/** An anchor of an active list. */
interface ListedAnchor {
  readonly trustListId: string;
  readonly der: Buffer;
}

/** The anchors of active lists that have a subject, by list. */
export async function findAnchorsOf(db: Reader<DB>, subjectDn: string): Promise<readonly ListedAnchor[]> {
  const rows = await db
    .selectFrom('trust_list_anchors as anchor')
    .innerJoin('trust_list_snapshots as snapshot', (join) =>
      join
        .onRef('snapshot.trust_list_id', '=', 'anchor.trust_list_id')
        .onRef('snapshot.sequence_number', '=', 'anchor.sequence_number'),
    )
    .select(['anchor.trust_list_id', 'anchor.der'])
    .where('anchor.subject_dn', '=', subjectDn)
    .where('snapshot.status', '=', 'Active')
    .orderBy('anchor.trust_list_id')
    .orderBy('anchor.position')
    .limit(mostIssuers)
    .execute();
  return rows.map(({ trust_list_id: trustListId, der }) => ({ trustListId, der }));
}

/** Anchors of one name, over all lists. */
const mostIssuers = 64;

/** Supersedes the active version of the list, and inserts the new one as active. */
export async function insertSnapshot(
  tx: Transactor<DB>,
  snapshot: Snapshot,
  content: {
    readonly format: ListContent['format'];
    readonly document: Buffer;
    readonly anchors: readonly Anchor[];
  },
): Promise<void> {
  const { trustListId: trust_list_id, sequenceNumber: sequence_number } = snapshot;
  await tx
    .updateTable('trust_list_snapshots')
    .set({ status: 'Superseded' })
    .where('trust_list_id', '=', trust_list_id)
    .where('status', '=', 'Active')
    .execute();
  await tx
    .insertInto('trust_list_snapshots')
    .values({ ...toRow(snapshot), format: content.format, document: content.document })
    .execute();
  for (let from = 0; from < content.anchors.length; from += anchorBatch) {
    const rows = content.anchors.slice(from, from + anchorBatch).map((anchor, index) => ({
      trust_list_id,
      sequence_number,
      position: from + index,
      thumbprint: anchor.thumbprint,
      der: Buffer.from(anchor.der),
      subject_dn: anchor.subjectDn,
      service_type: anchor.serviceType,
      service_status: anchor.serviceStatus ?? null,
      not_before: new Date(anchor.notBeforeMs),
      not_after: new Date(anchor.notAfterMs),
    }));
    await tx.insertInto('trust_list_anchors').values(rows).execute();
  }
}

/** Rows of one statement: few enough that building it does not hold up other requests. */
const anchorBatch = 200;

/** Removes all versions of a list; returns their number. */
export async function removeVersions(tx: Transactor<DB>, trustListId: string): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('trust_list_snapshots')
    .where('trust_list_id', '=', trustListId)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

/** Without the documents, which only an inspection of the database needs. */
function snapshots(db: Reader<DB>) {
  return db
    .selectFrom('trust_list_snapshots')
    .select([
      'trust_list_id',
      'sequence_number',
      'status',
      'scheme_territory',
      'scheme_operator_name',
      'list_issue_at',
      'next_update_at',
      'signer_subject',
      'signer_thumbprint',
      'imported_at',
      'source_url',
      'document_sha256',
      'root_count',
      'extracted',
      'skipped',
    ]);
}

function toSnapshot(row: Row): Snapshot {
  return {
    trustListId: row.trust_list_id,
    sequenceNumber: Number(row.sequence_number),
    status: row.status === 'Active' ? 'Active' : 'Superseded',
    schemeTerritory: row.scheme_territory ?? undefined,
    schemeOperatorName: row.scheme_operator_name,
    listIssueAtMs: row.list_issue_at.getTime(),
    nextUpdateAtMs: row.next_update_at?.getTime(),
    signerSubject: row.signer_subject,
    signerThumbprint: row.signer_thumbprint,
    importedAtMs: row.imported_at.getTime(),
    sourceUrl: row.source_url ?? undefined,
    documentSha256: row.document_sha256,
    rootCount: row.root_count,
    extracted: row.extracted,
    skipped: row.skipped,
  };
}

function toRow(snapshot: Snapshot) {
  const { nextUpdateAtMs } = snapshot;
  return {
    trust_list_id: snapshot.trustListId,
    sequence_number: snapshot.sequenceNumber,
    status: snapshot.status,
    scheme_territory: snapshot.schemeTerritory ?? null,
    scheme_operator_name: snapshot.schemeOperatorName,
    list_issue_at: new Date(snapshot.listIssueAtMs),
    next_update_at: nextUpdateAtMs === undefined ? null : new Date(nextUpdateAtMs),
    signer_subject: snapshot.signerSubject,
    signer_thumbprint: snapshot.signerThumbprint,
    imported_at: new Date(snapshot.importedAtMs),
    source_url: snapshot.sourceUrl ?? null,
    document_sha256: snapshot.documentSha256,
    root_count: snapshot.rootCount,
    extracted: snapshot.extracted,
    skipped: JSON.stringify(snapshot.skipped),
  };
}

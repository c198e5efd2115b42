import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { PRESENTATION_OUTCOMES, WalletDatabase } from '../../database/schema.ts';

/** The notice that a person waits for a credential. */
export interface Notice {
  readonly label: string;
  readonly setAtMs: number;
}

/** One entry of a person's history of presentations. */
export interface Presentation {
  readonly id: string;
  readonly credentialId: string;
  readonly verifierLabel: string | null;
  readonly verifierDid: string | null;
  readonly disclosedClaims: readonly string[];
  readonly presentedAtMs: number;
  readonly outcome: (typeof PRESENTATION_OUTCOMES)[number];
}

type Db = Reader<WalletDatabase>;
type Tx = Transactor<WalletDatabase>;

/** Entries of a history; older ones are deleted. */
const MOST_PRESENTATIONS = 500;
const noticeHours = 24;
const purgedAtOnce = 10_000;

export async function findNotice(db: Db, platformUserId: string): Promise<Notice | undefined> {
  const row = await db
    .selectFrom('application_notices')
    .select(['label', 'set_at'])
    .where('platform_user_id', '=', platformUserId)
    .where('expires_at', '>', sql<Date>`statement_timestamp()`)
    .executeTakeFirst();
  return row && { label: row.label, setAtMs: row.set_at.getTime() };
}

/** Replaces the notice of a person; it expires 24 hours after now. */
export async function storeNotice(tx: Tx, platformUserId: string, label: string): Promise<Notice> {
  const now = sql<Date>`statement_timestamp()`;
  const times = {
    label,
    set_at: now,
    expires_at: sql<Date>`${now} + make_interval(hours => ${noticeHours})`,
  };
  const row = await tx
    .insertInto('application_notices')
    .values({ platform_user_id: platformUserId, ...times })
    .onConflict((conflict) => conflict.column('platform_user_id').doUpdateSet(times))
    .returning('set_at')
    .executeTakeFirstOrThrow();
  return { label, setAtMs: row.set_at.getTime() };
}

export async function deleteNotice(tx: Tx, platformUserId: string): Promise<void> {
  await tx.deleteFrom('application_notices').where('platform_user_id', '=', platformUserId).execute();
}

/** Deletes expired notices, at most 10,000. */
export async function purgeNotices(tx: Tx): Promise<void> {
  const expired = tx
    .selectFrom('application_notices')
    .select('platform_user_id')
    .where('expires_at', '<=', sql<Date>`statement_timestamp()`)
    .limit(purgedAtOnce)
    .forUpdate()
    .skipLocked();
  await tx.deleteFrom('application_notices').where('platform_user_id', 'in', expired).execute();
}

/** The history of a person, newest first. */
export async function listPresentations(db: Db, platformUserId: string): Promise<Presentation[]> {
  const rows = await db
    .selectFrom('presentations')
    .selectAll()
    .where('platform_user_id', '=', platformUserId)
    .orderBy('presented_at', 'desc')
    .orderBy('id')
    .limit(MOST_PRESENTATIONS)
    .execute();
  return rows.map(fromRow);
}

/**
 * Stores reports of presentations, whose ids are different. A repeated report replaces the entry and keeps the time of
 * the first report. Entries beyond the limit of a history are deleted, oldest first.
 */
export async function storePresentations(
  tx: Tx,
  platformUserId: string,
  reports: readonly Presentation[],
): Promise<void> {
  await tx
    .insertInto('presentations')
    .values(reports.map((report) => toRow(platformUserId, report)))
    .onConflict((conflict) =>
      conflict.columns(['platform_user_id', 'id']).doUpdateSet((eb) => ({
        credential_id: eb.ref('excluded.credential_id'),
        verifier_label: eb.ref('excluded.verifier_label'),
        verifier_did: eb.ref('excluded.verifier_did'),
        disclosed_claims: eb.ref('excluded.disclosed_claims'),
        presented_at: eb.ref('excluded.presented_at'),
        outcome: eb.ref('excluded.outcome'),
      })),
    )
    .execute();
  const beyond = tx
    .selectFrom('presentations')
    .select('id')
    .where('platform_user_id', '=', platformUserId)
    .orderBy('presented_at', 'desc')
    .orderBy('id')
    .offset(MOST_PRESENTATIONS);
  await tx
    .deleteFrom('presentations')
    .where('platform_user_id', '=', platformUserId)
    .where('id', 'in', beyond)
    .execute();
}

export async function deletePresentation(tx: Tx, platformUserId: string, id: string): Promise<void> {
  await tx
    .deleteFrom('presentations')
    .where('platform_user_id', '=', platformUserId)
    .where('id', '=', id)
    .execute();
}

function toRow(platformUserId: string, report: Presentation) {
  return {
    platform_user_id: platformUserId,
    id: report.id,
    credential_id: report.credentialId,
    verifier_label: report.verifierLabel,
    verifier_did: report.verifierDid,
    disclosed_claims: [...report.disclosedClaims],
    presented_at: new Date(report.presentedAtMs),
    outcome: report.outcome,
    reported_at: sql<Date>`statement_timestamp()`,
  };
}

function fromRow(row: Selectable<WalletDatabase['presentations']>): Presentation {
  return {
    id: row.id,
    credentialId: row.credential_id,
    verifierLabel: row.verifier_label,
    verifierDid: row.verifier_did,
    disclosedClaims: row.disclosed_claims,
    presentedAtMs: row.presented_at.getTime(),
    outcome: row.outcome,
  };
}

import type { Reader, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../database/schema.ts';

type DB = CredentialDatabase;

/** What happened to a credential or a presentation, for the audit log of an organisation. */
interface NewEvent {
  readonly organizationId: string;
  readonly kind: 'issued' | 'statusChanged' | 'notTrusted';
  /** The credential, or the request for presentations. */
  readonly resourceId: string;
  /** The configuration, the new status, or why the issuer is not trusted. */
  readonly detail: string;
  readonly platformUserId?: string | undefined;
  readonly at: Date;
}

export interface StoredEvent extends NewEvent {
  readonly id: string;
}

/** Writes events in the transaction of what they tell of; they are reported afterwards. */
export async function insertEvents(tx: Transactor<DB>, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return;
  await tx
    .insertInto('unreported_events')
    .values(
      events.map((event) => ({
        organization_id: event.organizationId,
        kind: event.kind,
        resource_id: event.resourceId,
        detail: event.detail,
        platform_user_id: event.platformUserId ?? null,
        occurred_at: event.at,
      })),
    )
    .execute();
}

/** The oldest events that are not reported. */
export async function listUnreported(db: Reader<DB>, most: number): Promise<readonly StoredEvent[]> {
  const rows = await db
    .selectFrom('unreported_events')
    .selectAll()
    .orderBy('occurred_at')
    .limit(most)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    organizationId: row.organization_id,
    kind: row.kind,
    resourceId: row.resource_id,
    detail: row.detail,
    platformUserId: row.platform_user_id ?? undefined,
    at: row.occurred_at,
  }));
}

/** Forgets events that are reported. */
export async function deleteEvents(tx: Transactor<DB>, ids: readonly string[]): Promise<void> {
  await tx.deleteFrom('unreported_events').where('id', 'in', ids).execute();
}

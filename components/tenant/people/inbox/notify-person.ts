import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Category, Severity } from './entry.ts';
import { sourceEventId } from './source-event.ts';
import { insertEntry } from './store.ts';

const writerServiceId = 'service-tenant';

/** A notice of this service to a person about a membership or about account security. */
interface Notice {
  readonly platformUserId: string;
  readonly category: Extract<Category, 'Membership' | 'Security'>;
  readonly severity?: Severity;
  /** For example `org-membership-added`. */
  readonly eventKey: string;
  /** The subject of the notice: the id of an organisation or of the person. */
  readonly about: string;
  /** Distinguishes events of the same kind: the id of the audit event or of the session. */
  readonly naturalKey: string;
  readonly iconKey: string;
  readonly title: string;
  readonly summary?: string;
  readonly detailHref?: string;
  readonly atMs: number;
}

const maxLength = { title: 200, summary: 1000 } as const;

/**
 * Writes the inbox entry in the transaction of the event, so that both commit or neither does. The caller publishes the
 * wake signal after the commit.
 */
export async function notifyPerson(tx: Transactor<TenantDatabase>, notice: Notice): Promise<void> {
  const { platformUserId, category, severity = 'Info', eventKey, about, naturalKey, atMs } = notice;
  await insertEntry(tx, {
    platformUserId,
    category,
    severity,
    correlationKey: `${category.toLowerCase()}:${about}`,
    title: notice.title.slice(0, maxLength.title),
    summary: notice.summary?.slice(0, maxLength.summary),
    iconKey: notice.iconKey,
    detailHref: notice.detailHref,
    sourceEventId: sourceEventId({ category, eventKey, platformUserId, naturalKey }),
    occurredAtMs: atMs,
    writerServiceId,
  });
}

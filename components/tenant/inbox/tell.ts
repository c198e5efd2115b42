import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import type { Category, Severity } from './entry.ts';
import { sourceEventId } from './source-event.ts';
import { insertEntry } from './store.ts';

const writerServiceId = 'service-tenant';

/** What this service tells a person of their memberships and of the safety of their account. */
export interface Told {
  readonly platformUserId: string;
  readonly category: Extract<Category, 'Membership' | 'Security'>;
  readonly severity?: Severity;
  /** As `org-membership-added`. */
  readonly eventKey: string;
  /** What it is about: an organisation, or the person themselves. */
  readonly about: string;
  /** What tells one such event from the next one: the id of its audit event, of a session. */
  readonly naturalKey: string;
  readonly iconKey: string;
  readonly title: string;
  readonly summary?: string;
  readonly detailHref?: string;
  readonly atMs: number;
}

const longest = { title: 200, summary: 1000 } as const;

/** Tells a person in the transaction of what happened: neither is there without the other. */
export async function tellPerson(tx: Transactor<TenantDatabase>, told: Told): Promise<void> {
  const { platformUserId, category, severity = 'Info', eventKey, about, naturalKey, atMs } = told;
  await insertEntry(tx, {
    platformUserId,
    category,
    severity,
    correlationKey: `${category.toLowerCase()}:${about}`,
    title: told.title.slice(0, longest.title),
    summary: told.summary?.slice(0, longest.summary),
    iconKey: told.iconKey,
    detailHref: told.detailHref,
    sourceEventId: sourceEventId({ category, eventKey, platformUserId, naturalKey }),
    occurredAtMs: atMs,
    writerServiceId,
  });
}

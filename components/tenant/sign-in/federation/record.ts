import type { Transactor } from '#kit/db/db.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { notifyPerson } from '../../people/inbox/notify-person.ts';
import type { Origin } from '../../requests/origin.ts';
import { findHomeOrganization } from '../lockout/store.ts';

interface LinkEvent {
  readonly accountId: string;
  readonly identityId?: string | undefined;
  readonly origin: Origin;
  readonly event: 'linked' | 'unlinked';
  /** Name of the social provider, or of the organisation. */
  readonly provider: string;
  readonly atMs: number;
}

/** Writes the audit event of a change of connections, and tells the person by the inbox. */
export async function recordLink(
  tx: Transactor<TenantDatabase>,
  { accountId, identityId, origin, event, provider, atMs }: LinkEvent,
): Promise<void> {
  const organizationId = await findHomeOrganization(tx, accountId);
  if (organizationId === undefined) return;
  const naturalKey = await appendAuditEvent(tx, {
    organizationId,
    occurredAtMs: atMs,
    type: event === 'linked' ? 'SocialLinked' : 'SocialUnlinked',
    identityId,
    platformUserId: accountId,
    origin,
    success: true,
    details: { provider },
  });
  await notifyPerson(tx, {
    platformUserId: accountId,
    category: 'Security',
    severity: event === 'linked' ? 'Info' : 'Warning',
    eventKey: `social-${event}`,
    about: accountId,
    naturalKey,
    iconKey: 'security.social',
    title: event === 'linked' ? `${provider} signs you in from now on` : `${provider} no longer signs you in`,
    detailHref: '/api/me/auth-methods',
    atMs,
  });
}

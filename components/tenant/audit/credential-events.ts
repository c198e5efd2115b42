import { findOrganization } from '../organizations/store.ts';
import type { AuditEventType } from './log/event.ts';
import { appendAuditOnce } from './log/store.ts';
import type { AuditDeps } from './refusals.ts';

const TYPES = {
  issued: { type: 'CredentialIssued', resourceType: 'credential', detail: 'configurationId' },
  statusChanged: { type: 'CredentialStatusChanged', resourceType: 'credential', detail: 'status' },
  notTrusted: { type: 'PresentationNotTrusted', resourceType: 'presentation-request', detail: 'reason' },
} as const satisfies Record<string, { type: AuditEventType; resourceType: string; detail: string }>;

/** What happened to a credential or a presentation, as the credential service reports it. */
interface CredentialEvent {
  readonly id: string;
  readonly organizationId: string;
  readonly kind: keyof typeof TYPES;
  readonly resourceId: string;
  readonly detail: string;
  readonly platformUserId: string | undefined;
  readonly occurredAtMs: number;
}

/**
 * Appends events to the audit logs of their organisations, each once however often it is reported. Events of
 * organisations that do not exist or were deleted are skipped.
 */
export async function recordCredentialEvents(
  { db, clock }: AuditDeps,
  events: readonly CredentialEvent[],
): Promise<void> {
  // in a fixed order, so that replicas that report the same events do not deadlock
  const ordered = events.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  await db.transact(async (tx) => {
    for (const { id, organizationId, kind, resourceId, detail, platformUserId, occurredAtMs } of ordered) {
      if ((await findOrganization(tx, organizationId)) === undefined) continue;
      const { type, resourceType, detail: name } = TYPES[kind];
      const event = {
        organizationId,
        occurredAtMs: Math.min(occurredAtMs, clock.nowMs()),
        type,
        platformUserId,
        success: kind !== 'notTrusted',
        details: { resourceType, resourceId, [name]: detail },
      };
      await appendAuditOnce(tx, event, `credential-event ${id}`);
    }
  });
}

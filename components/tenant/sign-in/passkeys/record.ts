import type { Caller } from '#core/identity/claims.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { notifyPerson } from '../../people/inbox/notify-person.ts';
import type { Origin } from '../../requests/origin.ts';
import { findHomeOrganization } from '../lockout/store.ts';

interface PasskeyEvent {
  readonly accountId: string;
  readonly caller?: Pick<Caller, 'organizationId' | 'subject'>;
  readonly origin: Origin;
  readonly event: 'added' | 'removed' | 'disabled';
  readonly passkeyId: string;
  readonly atMs: number;
}

const types = {
  added: 'PassKeyRegistered',
  removed: 'PassKeyRemoved',
  disabled: 'PassKeyAuthentication',
} as const;

/** Writes the audit event of a change of passkeys, and tells the person by the inbox. */
export async function recordPasskey(
  tx: Transactor<TenantDatabase>,
  { accountId, caller, origin, event, passkeyId, atMs }: PasskeyEvent,
): Promise<void> {
  const organizationId = caller?.organizationId ?? (await findHomeOrganization(tx, accountId));
  if (organizationId === undefined) return;
  const naturalKey = await appendAuditEvent(tx, {
    organizationId,
    occurredAtMs: atMs,
    type: types[event],
    identityId: caller?.subject,
    platformUserId: accountId,
    origin,
    success: event !== 'disabled',
    details: { passkeyId, event },
  });
  await notifyPerson(tx, {
    platformUserId: accountId,
    category: 'Security',
    severity: event === 'added' ? 'Info' : 'Warning',
    eventKey: `passkey-${event}`,
    about: accountId,
    naturalKey,
    iconKey: 'security.passkey',
    title: `A passkey was ${event}`,
    ...(event === 'disabled' && { summary: 'Its counter went back: a copy of it may exist.' }),
    detailHref: '/api/me/auth-methods',
    atMs,
  });
}

import type { Caller } from '#core/identity/claims.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { lockAccount } from '../../people/accounts/store.ts';
import { notifyPerson } from '../../people/inbox/notify-person.ts';
import type { MessageQueue } from '../../people/messages/queue.ts';
import type { Origin } from '../../requests/origin.ts';
import { findHomeOrganization } from '../lockout/store.ts';

interface FactorEvent {
  readonly accountId: string;
  readonly request: {
    readonly origin: Origin;
    readonly caller?: Pick<Caller, 'organizationId' | 'subject'>;
  };
  readonly event: 'enabled' | 'disabled' | 'backup-code-used';
  readonly method: 'totp' | 'email' | 'sms' | 'backup';
  readonly atMs: number;
}

const texts = {
  totp: 'the authenticator app',
  email: 'codes by e-mail',
  sms: 'codes by text message',
  backup: 'a backup code',
} as const;

const types = {
  enabled: 'TwoFactorEnabled',
  disabled: 'TwoFactorDisabled',
  'backup-code-used': 'BackupCodeUsed',
} as const;

/** Writes the audit event of a change of second factors, and tells the person by the inbox and by mail. */
export async function recordFactor(
  { messages }: { readonly messages: MessageQueue },
  tx: Transactor<TenantDatabase>,
  { accountId, request, event, method, atMs }: FactorEvent,
): Promise<void> {
  const organizationId = request.caller?.organizationId ?? (await findHomeOrganization(tx, accountId));
  if (organizationId === undefined) return;
  const naturalKey = await appendAuditEvent(tx, {
    organizationId,
    occurredAtMs: atMs,
    type: types[event],
    identityId: request.caller?.subject,
    platformUserId: accountId,
    origin: request.origin,
    success: true,
    details: { method },
  });
  const title =
    event === 'backup-code-used' ? 'A backup code was used' : `Second factor ${event}: ${texts[method]}`;
  await notifyPerson(tx, {
    platformUserId: accountId,
    category: 'Security',
    severity: event === 'enabled' ? 'Info' : 'Warning',
    eventKey: event === 'backup-code-used' ? event : `two-factor-${event}`,
    about: accountId,
    naturalKey,
    iconKey: 'security.two-factor',
    title,
    detailHref: '/api/me/auth-methods',
    atMs,
  });
  const account = await lockAccount(tx, accountId);
  if (account?.email === undefined || !account.emailVerified) return;
  const text = `${title}.\n\nIf this was not you, set a new password at once.\n`;
  await messages.add(tx, { channel: 'mail', to: account.email, subject: title, text }, atMs);
}

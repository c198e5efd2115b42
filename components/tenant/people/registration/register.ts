import { randomUUIDv7 } from 'node:crypto';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Organization } from '../../organizations/organization.ts';
import { findRegistrationTarget } from '../../organizations/store.ts';
import type { Origin } from '../../requests/origin.ts';
import type { PasswordPolicy } from '../../sign-in/passwords/policy.ts';
import type { Passwords } from '../../sign-in/passwords/queue.ts';
import { normalizeEmail } from '../accounts/account.ts';
import type { MessageQueue } from '../messages/queue.ts';
import { mayMail } from '../messages/unasked.ts';
import { knownAddressMail, verificationMail } from './mails.ts';
import { insertRegistration } from './store.ts';
import type { AddressTokens } from './tokens.ts';

export interface RegisterDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly passwordPolicy: PasswordPolicy;
  readonly messages: MessageQueue;
  readonly tokens: AddressTokens;
  readonly baseUrl: string;
}

interface Applicant {
  readonly orgSubdomain: string;
  readonly email: string;
  readonly password: string;
  readonly displayName: string;
  readonly origin: Origin;
}

/**
 * Registers a person in a Public organisation that takes registrations. Known and unknown addresses get the same answer
 * after the same hash and the same statements; a mail tells the owner of the address which case it was.
 *
 * @returns the id of the new user, or an id of no user
 * @throws UNKNOWN_SUBDOMAIN, REGISTRATION_CLOSED, PASSWORD_REFUSED
 */
export async function register(deps: RegisterDeps, applicant: Applicant): Promise<string> {
  const organization = await target(deps, applicant.orgSubdomain);
  const email = normalizeEmail(applicant.email);
  const words = [email.split('@')[0] ?? '', applicant.displayName, organization.name, organization.subdomain];
  const faults = await deps.passwordPolicy.judge(applicant.password, { words });
  if (faults.length > 0) throw refusal('PASSWORD_REFUSED', { details: { errors: { password: faults } } });
  const passwordHash = await deps.passwords.hash(applicant.password);
  const identityId = randomUUIDv7();
  const isMailed = await mayMail(deps.db, email, 'registration');
  const attempt = { ...applicant, email, passwordHash, identityId, organization, isMailed };
  await deps.db.transact((tx) => write(deps, tx, attempt));
  return identityId;
}

async function target(deps: RegisterDeps, subdomain: string): Promise<Organization> {
  const found = await findRegistrationTarget(deps.db.read, subdomain.trim().toLowerCase());
  if (found === undefined) {
    throw refusal('UNKNOWN_SUBDOMAIN', { details: { errors: { orgSubdomain: ['unknown'] } } });
  }
  if (!found.takesRegistrations) throw refusal('REGISTRATION_CLOSED');
  return found.organization;
}

interface Attempt extends Applicant {
  readonly passwordHash: string;
  readonly identityId: string;
  readonly organization: Organization;
  readonly isMailed: boolean;
}

async function write(deps: RegisterDeps, tx: Transactor<TenantDatabase>, attempt: Attempt): Promise<void> {
  const { organization, email, displayName, identityId, passwordHash, origin } = attempt;
  const { tokens, messages, baseUrl } = deps;
  const atMs = deps.clock.nowMs();
  const accountId = randomUUIDv7();
  const row = {
    via: 'Local' as const,
    accountId,
    identityId,
    organizationId: organization.id,
    email,
    displayName,
    passwordHash,
    atMs,
  };
  const isNew = await insertRegistration(tx, row);
  // Issued in any case; where the address is known they are not sent, and their subject does not exist.
  const token = await tokens.verification.issue(tx, { subject: accountId, payload: { email } });
  const disownToken = await tokens.disowning.issue(tx, { subject: accountId, payload: {} });
  const notice = { to: email, baseUrl, organizationName: organization.name };
  const { ipAddress } = origin;
  const mail = isNew
    ? verificationMail({ ...notice, token, disownToken, at: new Date(atMs), ipAddress })
    : knownAddressMail(notice);
  await messages.add(tx, attempt.isMailed ? mail : { channel: 'none' }, atMs);
  await appendAudit(tx, {
    organizationId: organization.id,
    occurredAtMs: atMs,
    type: 'SelfRegistration',
    ...(isNew && { identityId, platformUserId: accountId }),
    origin,
    success: isNew,
    details: isNew ? {} : { reason: 'known-address' },
  });
}

import type { Caller } from '#core/identity/claims.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../../audit/log/store.ts';
import type { TenantDatabase } from '../../../database/schema.ts';
import { refusal } from '../../../errors.ts';
import { lockMembership } from '../../../organizations/lock-membership.ts';
import { type Account, normalizeEmail } from '../../../people/accounts/account.ts';
import { lockAccount } from '../../../people/accounts/store.ts';
import type { MessageQueue } from '../../../people/messages/queue.ts';
import { verificationMail } from '../../../people/registration/mails.ts';
import type { AddressTokens } from '../../../people/registration/tokens.ts';
import type { Origin } from '../../../requests/origin.ts';
import { requirePerson } from '../../../requests/person.ts';
import { endTokens } from '../../../tokens/sessions/end-tokens.ts';
import { type IssuedTokens, issueSession, type Session } from '../../../tokens/sessions/session.ts';
import { findFamily, type RefreshFamily } from '../../../tokens/sessions/store.ts';
import { openSession } from '../../opening/open-session.ts';
import { resolveTier } from '../../opening/tier.ts';
import { completeProfile, findAddressed, isProfileComplete } from '../store.ts';
import type { OrganizationDeps } from './sign-in.ts';

type Tx = Transactor<TenantDatabase>;

export interface ProfileDeps extends OrganizationDeps {
  readonly messages: MessageQueue;
  readonly tokens: AddressTokens;
  readonly installation: string;
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
}

interface Completion {
  readonly caller: Caller;
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  readonly origin: Origin;
}

/** A profile that is complete, with a session that is no longer restricted. */
interface CompletedProfile {
  readonly tokens: IssuedTokens;
  readonly userId: string;
  readonly displayName: string;
  readonly email: string | undefined;
}

/**
 * Writes what the provider of an organisation did not tell about the caller. An address is unverified until its mail is
 * confirmed. The session is replaced by one without the restriction.
 *
 * @throws PROFILE_ALREADY_COMPLETE, ADDRESS_TAKEN, SESSION_ENDED
 */
export async function finishProfile(deps: ProfileDeps, completion: Completion): Promise<CompletedProfile> {
  const accountId = requirePerson(completion.caller);
  const { session, ...profile } = await deps.db.transact(async (tx) => {
    const { account, from } = await requireIncomplete(tx, completion.caller, accountId);
    const written = await writeProfile(deps, tx, { account, completion });
    return { session: await replaceSession(deps, tx, { account, from, completion }), ...written };
  });
  deps.notify();
  return { tokens: issueSession(deps, session), ...profile };
}

async function requireIncomplete(tx: Tx, { subject, sessionId }: Caller, accountId: string) {
  const account = await lockAccount(tx, accountId);
  const from = sessionId === undefined ? undefined : await findFamily(tx, sessionId);
  if (account?.isActive !== true || from === undefined || from.revoked) throw refusal('SESSION_ENDED');
  if (await isProfileComplete(tx, subject)) throw refusal('PROFILE_ALREADY_COMPLETE');
  return { account, from };
}

interface Writing {
  readonly account: Account;
  readonly completion: Completion;
}

async function writeProfile(deps: ProfileDeps, tx: Tx, { account, completion }: Writing) {
  const { subject: identityId, organizationId = '' } = completion.caller;
  // An address that the account has stays: PUT /api/me/email changes it.
  const isAsked = account.email === undefined && completion.email !== undefined;
  const email = isAsked ? normalizeEmail(completion.email) : undefined;
  if (email !== undefined && (await findAddressed(tx, email, organizationId)).isAwaited) {
    throw refusal('ADDRESS_TAKEN');
  }
  const displayName = completion.displayName ?? account.displayName;
  await completeProfile(tx, identityId, { displayName, email });
  if (email !== undefined) await mailTo(deps, tx, { account, completion, email });
  await appendAudit(tx, {
    organizationId,
    occurredAtMs: deps.clock.nowMs(),
    type: 'ProfileCompleted',
    identityId,
    platformUserId: account.id,
    origin: completion.origin,
    success: true,
  });
  return { userId: identityId, displayName, email: email ?? account.email };
}

async function mailTo(
  deps: ProfileDeps,
  tx: Tx,
  { account, completion, email }: Writing & { readonly email: string },
): Promise<void> {
  const nowMs = deps.clock.nowMs();
  const token = await deps.tokens.verification.issue(tx, { subject: account.id, payload: { email } });
  const mail = verificationMail({
    to: email,
    baseUrl: deps.baseUrl,
    organizationName: completion.caller.claims.org_name ?? deps.installation,
    token,
    disownToken: undefined,
    at: new Date(nowMs),
    ipAddress: completion.origin.ipAddress,
  });
  await deps.messages.add(tx, mail, nowMs);
}

async function replaceSession(
  deps: ProfileDeps,
  tx: Tx,
  { account, from, completion }: Writing & { readonly from: RefreshFamily },
): Promise<Session> {
  const { subject: identityId, organizationId = '' } = completion.caller;
  const nowMs = deps.clock.nowMs();
  const membership = await lockMembership(tx, { identityId, organizationId });
  if (membership === undefined) throw refusal('SESSION_ENDED');
  const reason = 'profile-completed';
  await endTokens(tx, { kind: 'family', key: from.id, families: { id: from.id }, reason, atMs: nowMs });
  const { roles, orgType } = membership;
  const { amr, basicProofAtMs, strongProofAtMs } = from;
  return openSession(tx, {
    account,
    membership,
    tier: resolveTier({ roles, orgType }) === 'platform' ? 'platform' : 'consumer',
    method: 'oidc',
    amr,
    basicProofAtMs,
    strongProofAtMs,
    origin: completion.origin,
    nowMs,
  });
}

import { randomUUIDv7 } from 'node:crypto';
import type { HumanTier } from '#core/identity/tiers.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { publicOrganizationClosed, refusal } from '../../errors.ts';
import { lockMembership } from '../../organizations/lock-membership.ts';
import { requirePublicOrganization } from '../../organizations/public.ts';
import { type Account, normalizeEmail } from '../../people/accounts/account.ts';
import { lockAccount } from '../../people/accounts/store.ts';
import type { Membership } from '../../people/memberships/membership.ts';
import { listMemberships } from '../../people/memberships/store.ts';
import type { MessageQueue } from '../../people/messages/queue.ts';
import { verificationMail } from '../../people/registration/mails.ts';
import { insertRegistration } from '../../people/registration/store.ts';
import type { AddressTokens } from '../../people/registration/tokens.ts';
import type { Origin } from '../../requests/origin.ts';
import {
  type IssuedTokens,
  issueSession,
  type Session,
  type SessionIssuer,
} from '../../tokens/sessions/session.ts';
import { chooseMembership } from '../opening/membership.ts';
import { openSession } from '../opening/open-session.ts';
import { resolveTier } from '../opening/tier.ts';
import { requireLogin } from '../second-step/complete.ts';
import type { LoginTokens } from '../second-step/login-token.ts';
import { type Asserted, beginAssertion, judgeAssertion, recordRefusal, useAssertion } from './assert.ts';
import { beginCreation, judgeAttestation, type PasskeyDeps } from './enrol.ts';
import { recordPasskey } from './record.ts';
import type { Assertion, Attestation } from './schemas.ts';
import { isUsable, type Signals, signalsOf, userNamesOf } from './signals.ts';
import { insertPasskey, listPasskeys } from './store.ts';

type Tx = Transactor<TenantDatabase>;

export interface PasskeySignInDeps extends PasskeyDeps, SessionIssuer {
  readonly loginTokens: LoginTokens;
  readonly messages: MessageQueue;
  readonly tokens: AddressTokens;
  readonly baseUrl: string;
}

/** Claims by RFC 8176 of a passkey with user verification. */
const amr = ['hwk', 'user', 'mfa'];

interface Opened {
  readonly session: Session;
  readonly signals: Signals;
}

/** Tokens of a sign-in, and what the page signals to the authenticator. */
export interface SignedIn {
  readonly tokens: IssuedTokens;
  readonly signals: Signals;
}

async function open(
  { party }: PasskeySignInDeps,
  tx: Tx,
  opening: Omit<Parameters<typeof openSession>[1], 'amr' | 'basicProofAtMs' | 'strongProofAtMs'>,
): Promise<Opened> {
  const { account, nowMs } = opening;
  const session = await openSession(tx, { ...opening, amr, basicProofAtMs: nowMs, strongProofAtMs: nowMs });
  return { session, signals: signalsOf(party, account, await listPasskeys(tx, account.id)) };
}

interface SignUp {
  readonly displayName: string;
  readonly email?: string | undefined;
}

/**
 * Begins the sign-up of a person with a passkey alone. Nothing is made until the answer comes, and an address is not
 * looked up.
 * @throws PASSKEYS_UNAVAILABLE, PUBLIC_ORG_DISABLED, REGISTRATION_CLOSED
 */
export async function beginSignUp(deps: PasskeySignInDeps, { displayName, email }: SignUp) {
  await requirePublicOrganization(deps.db.read);
  const accountId = randomUUIDv7();
  const ceremony = {
    purpose: 'sign-up',
    accountId,
    displayName,
    email: email === undefined ? undefined : normalizeEmail(email),
  } as const;
  const user = userNamesOf({ email: ceremony.email, displayName });
  const creation = { ceremony, user, known: [], residentKey: 'required' } as const;
  return deps.db.transact((tx) => beginCreation(deps, tx, creation));
}

interface Answered<Response> {
  readonly transactionId: string;
  readonly response: Response;
  readonly origin: Origin;
}

/**
 * Makes the account of a sign-up and signs it in.
 * @throws INVALID_ATTESTATION, KNOWN_CREDENTIAL, ADDRESS_TAKEN, PUBLIC_ORG_DISABLED, REGISTRATION_CLOSED
 */
export async function finishSignUp(
  deps: PasskeySignInDeps,
  answered: Answered<Attestation>,
): Promise<SignedIn> {
  const { transactionId, response, origin } = answered;
  const { ceremony, passkey } = await judgeAttestation(deps, transactionId, response);
  const { accountId, email, displayName = '' } = ceremony;
  if (ceremony.purpose !== 'sign-up' || accountId === undefined) throw refusal('INVALID_ATTESTATION');
  const organization = await requirePublicOrganization(deps.db.read);
  const opened = await deps.db.transact(async (tx) => {
    if (typeof (await deps.ceremonies.take(tx, transactionId)) === 'string')
      throw refusal('INVALID_ATTESTATION');
    const nowMs = deps.clock.nowMs();
    const identityId = randomUUIDv7();
    const row = { accountId, identityId, organizationId: organization.id, email, displayName, atMs: nowMs };
    if (!(await insertRegistration(tx, { ...row, passwordHash: undefined, via: 'Passkey' }))) {
      throw refusal('ADDRESS_TAKEN');
    }
    if (!(await insertPasskey(tx, { ...passkey, accountId, displayName, createdAtMs: nowMs }))) {
      throw refusal('KNOWN_CREDENTIAL');
    }
    await record(deps, tx, { ...row, organizationName: organization.name, origin });
    await recordPasskey(tx, { accountId, origin, event: 'added', passkeyId: passkey.id, atMs: nowMs });
    const account = await lockAccount(tx, accountId);
    const membership = await lockMembership(tx, { identityId, organizationId: organization.id });
    if (account === undefined || membership === undefined) throw publicOrganizationClosed();
    return open(deps, tx, { account, membership, tier: 'consumer', method: 'passkey', origin, nowMs });
  });
  return issueOrRefuse(deps, opened);
}

interface Registered {
  readonly accountId: string;
  readonly identityId: string;
  readonly organizationId: string;
  readonly organizationName: string;
  readonly email: string | undefined;
  readonly atMs: number;
  readonly origin: Origin;
}

async function record(deps: PasskeySignInDeps, tx: Tx, registered: Registered): Promise<void> {
  const { accountId, identityId, organizationId, organizationName, email, atMs, origin } = registered;
  await appendAudit(tx, {
    organizationId,
    occurredAtMs: atMs,
    type: 'SelfRegistration',
    identityId,
    platformUserId: accountId,
    origin,
    success: true,
    details: { method: 'passkey' },
  });
  if (email === undefined) return;
  const token = await deps.tokens.verification.issue(tx, { subject: accountId, payload: { email } });
  const disownToken = await deps.tokens.disowning.issue(tx, { subject: accountId, payload: {} });
  const { ipAddress } = origin;
  const { baseUrl } = deps;
  const mail = { to: email, baseUrl, organizationName, token, disownToken, at: new Date(atMs), ipAddress };
  await deps.messages.add(tx, verificationMail(mail), atMs);
}

/** Begins a sign-in by a passkey that tells who it is. @throws PASSKEYS_UNAVAILABLE */
export function beginSignIn(deps: PasskeySignInDeps) {
  return deps.db.transact((tx) =>
    beginAssertion(deps, tx, { ceremony: { purpose: 'sign-in' }, allowed: [] }),
  );
}

/** @throws UNKNOWN_CREDENTIAL, INVALID_ASSERTION */
export async function finishSignIn(
  deps: PasskeySignInDeps,
  answered: Answered<Assertion> & { readonly tier: HumanTier | undefined },
): Promise<SignedIn> {
  const { origin } = answered;
  const asserted = await judgeAssertion(deps, { ...answered, purpose: 'sign-in' });
  const opened = await deps.db.transact(async (tx) => {
    const { accountId } = asserted.passkey;
    const account = await lockAccount(tx, accountId);
    if (!(await useAssertion(deps, tx, asserted, origin))) return undefined;
    const membership = account?.isActive === true ? await lockChosen(tx, account) : undefined;
    if (account === undefined || membership === undefined) {
      await recordRefusal(deps, tx, accountId, origin);
      return undefined;
    }
    const { roles, orgType } = membership;
    const wanted = answered.tier === 'consumer' ? 'consumer' : undefined;
    const tier = resolveTier({ tier: wanted, roles, orgType });
    const nowMs = deps.clock.nowMs();
    const opening = {
      account,
      membership,
      tier: tier === 'refused' ? 'consumer' : tier,
      origin,
      nowMs,
    } as const;
    return open(deps, tx, { ...opening, method: 'passkey' });
  });
  return issueOrRefuse(deps, opened);
}

async function lockChosen(tx: Tx, account: Account): Promise<Membership | undefined> {
  const chosen = chooseMembership(account, await listMemberships(tx, account.id), undefined);
  return chosen && lockMembership(tx, chosen);
}

/** A refusal comes after the commit: a passkey that was disabled stays so, and the audit event of the refusal is kept. */
function issueOrRefuse(deps: PasskeySignInDeps, opened: Opened | undefined): SignedIn {
  deps.notifyInboxes();
  if (opened === undefined) throw refusal('INVALID_ASSERTION');
  return { tokens: issueSession(deps, opened.session), signals: opened.signals };
}

/** Begins the second step of a sign-in. @throws INVALID_LOGIN_TOKEN, FACTOR_NOT_ENABLED, RATE_LIMITED */
export async function beginSecondStep(deps: PasskeySignInDeps, loginToken: string) {
  const { subject: accountId, hash } = requireLogin(await deps.loginTokens.find(deps.db.read, loginToken));
  const loginHash = hash.toString('base64url');
  return deps.db.transact(async (tx) => {
    const allowed = (await listPasskeys(tx, accountId)).filter(isUsable);
    if (allowed.length === 0) throw refusal('FACTOR_NOT_ENABLED');
    return beginAssertion(deps, tx, { ceremony: { purpose: 'second-step', accountId, loginHash }, allowed });
  });
}

interface SecondStepAnswer extends Answered<Assertion> {
  readonly loginToken: string;
  readonly tier: HumanTier | undefined;
}

/** @throws INVALID_LOGIN_TOKEN, UNKNOWN_CREDENTIAL, INVALID_ASSERTION, RATE_LIMITED */
export async function finishSecondStep(
  deps: PasskeySignInDeps,
  answered: SecondStepAnswer,
): Promise<SignedIn> {
  const { loginToken, origin } = answered;
  const login = requireLogin(await deps.loginTokens.count(loginToken));
  const accountId = login.subject;
  const loginHash = login.hash.toString('base64url');
  const answer = { ...answered, purpose: 'second-step', accountId, loginHash } as const;
  const asserted: Asserted = await judgeAssertion(deps, answer);
  const opened = await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (!(await useAssertion(deps, tx, asserted, origin))) return undefined;
    requireLogin(await deps.loginTokens.take(tx, loginToken));
    const membership = account?.isActive === true ? await lockMembership(tx, login.payload) : undefined;
    if (account === undefined || membership === undefined) throw refusal('INVALID_LOGIN_TOKEN');
    const tier = answered.tier === 'consumer' ? 'consumer' : login.payload.tier;
    const nowMs = deps.clock.nowMs();
    return open(deps, tx, { account, membership, tier, method: 'password+passkey', origin, nowMs });
  });
  return issueOrRefuse(deps, opened);
}

import { randomUUIDv7 } from 'node:crypto';
import { PUBLIC_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../../audit/log/store.ts';
import type { TenantDatabase } from '../../../database/schema.ts';
import { refusal } from '../../../errors.ts';
import { lockMembership } from '../../../organizations/lock-membership.ts';
import { requirePublicOrganization } from '../../../organizations/public.ts';
import { lockAccount } from '../../../people/accounts/store.ts';
import { listMemberships } from '../../../people/memberships/store.ts';
import type { Origin } from '../../../requests/origin.ts';
import {
  type IssuedTokens,
  issueSession,
  type Session,
  type SessionIssuer,
} from '../../../tokens/sessions/session.ts';
import { chooseMembership } from '../../opening/membership.ts';
import { openSession } from '../../opening/open-session.ts';
import { resolveTier } from '../../opening/tier.ts';
import type { SocialProvider } from '../providers/providers.ts';
import type { LinkPendingTokens, StatePayload } from '../state.ts';
import { findAddressed, findLink, insertLink, insertProvisioned, recordLinkUse } from '../store.ts';
import type { UpstreamIdentity } from '../upstream/identity.ts';
import {
  type BegunVisit,
  beginVisit,
  redeemVisit,
  requireDestination,
  takeVisit,
  type Visit,
  type VisitDeps,
} from '../visit.ts';

type Tx = Transactor<TenantDatabase>;

export interface SocialDeps extends VisitDeps, SessionIssuer {
  /** The configured providers, by name. */
  readonly providers: ReadonlyMap<string, SocialProvider>;
  readonly pending: LinkPendingTokens;
  /** Called after the person was notified. */
  readonly notifyInboxes: () => void;
}

/** The path that providers send browsers back to. */
export const socialCallbackPath = '/auth/social/callback';

/** Claims by RFC 8176 have no value for it; `fed` is the usual one. */
export const federatedAmr = ['fed'];

/** @throws UNKNOWN_PROVIDER */
export function requireProvider({ providers }: Pick<SocialDeps, 'providers'>, name: string): SocialProvider {
  const provider = providers.get(name.trim().toLowerCase());
  if (provider === undefined) throw refusal('UNKNOWN_PROVIDER');
  return provider;
}

interface SignInStart {
  readonly provider: string;
  readonly surface: StatePayload['surface'];
  /** Where the provider sends the browser back; the page of this installation when absent. */
  readonly redirectUri: string | undefined;
  readonly returnTo: string | undefined;
  /** What the state is bound to. */
  readonly browser: string;
}

/** @throws UNKNOWN_PROVIDER, RETURN_ADDRESS_REFUSED */
export async function beginSocialSignIn(deps: SocialDeps, start: SignInStart): Promise<BegunVisit> {
  const { upstream, name } = requireProvider(deps, start.provider);
  const { surface, browser, redirectUri, returnTo } = start;
  const payload = {
    intent: 'sign-in',
    redirectUri: redirectUriOf(deps, redirectUri),
    browser,
    surface,
    returnTo: returnTo === undefined ? undefined : requireDestination(deps, returnTo),
  } as const;
  return deps.db.transact((tx) => beginVisit(deps, tx, { source: name, upstream, payload }));
}

export function redirectUriOf(deps: SocialDeps, asked: string | undefined): string {
  const path = asked === undefined ? socialCallbackPath : requireDestination(deps, asked);
  return new URL(path, deps.baseUrl).href;
}

/** What a provider sends back. */
export interface ProviderAnswer {
  readonly state: string;
  readonly code?: string | undefined;
  readonly error?: string | undefined;
  /** RFC 9207. */
  readonly iss?: string | undefined;
}

interface SignInEnd {
  readonly answer: ProviderAnswer;
  readonly judge: (visit: Visit) => boolean;
  /** The destination that decides the tier, where the visit names none. */
  readonly returnTo?: string;
  /** The name, where the provider sent it beside the code. */
  readonly displayName?: string | undefined;
  readonly origin: Origin;
}

type SocialOutcome =
  | { readonly kind: 'signed-in'; readonly tokens: IssuedTokens; readonly isNew: boolean }
  | { readonly kind: 'link-required'; readonly linkPendingToken: string };

/**
 * Ends a sign-in by a provider: opens the session of the account that is connected, or of a new one. An address that has an
 * account gives a token that its owner confirms, and no session.
 *
 * @throws INVALID_STATE, UNKNOWN_PROVIDER, PROVIDER_REFUSED, ProviderUnverified, ExistingUnverified, NoExistingAccount,
 *   PUBLIC_ORG_DISABLED, REGISTRATION_CLOSED, NOT_A_MEMBER
 */
export async function endSocialSignIn(
  deps: SocialDeps,
  { answer, judge, origin, returnTo, displayName }: SignInEnd,
): Promise<SocialOutcome> {
  const isSignIn = (visit: Visit) => visit.payload.intent === 'sign-in' && judge(visit);
  const visit = await takeVisit(deps, answer.state, isSignIn);
  const provider = requireProvider(deps, visit.subject);
  const found = await identifyVisit(deps, { provider, visit, answer, origin });
  const identity = { ...found, displayName: found.displayName ?? displayName };
  const destination = visit.payload.returnTo ?? returnTo;
  const arrival = { provider, identity, surface: visit.payload.surface, returnTo: destination, origin };
  const settled = (await settle(deps, arrival)) ?? (await settle(deps, arrival));
  deps.notifyInboxes();
  // Twice another request was faster with an account for the same identity.
  if (settled === undefined) throw refusal('INVALID_STATE');
  if ('linkPendingToken' in settled) return settled;
  const { session, isNew } = settled;
  return { kind: 'signed-in', tokens: issueSession(deps, session), isNew };
}

interface Identification {
  readonly provider: SocialProvider;
  readonly visit: Visit;
  readonly answer: ProviderAnswer;
  readonly origin: Origin;
}

/** Who the provider says that the person is. @throws PROVIDER_REFUSED */
export function identifyVisit(
  deps: VisitDeps,
  { provider, visit, answer, origin }: Identification,
): Promise<UpstreamIdentity> {
  const { state, ...parameters } = answer;
  const { upstream } = provider;
  const organizationId = PUBLIC_ORGANIZATION_ID;
  const redemption = { upstream, visit, state, parameters, organizationId, origin };
  return redeemVisit(deps, redemption, (redeemed) => provider.identify(redeemed));
}

interface Arrival {
  readonly provider: SocialProvider;
  readonly identity: UpstreamIdentity;
  readonly surface: StatePayload['surface'];
  readonly returnTo: string | undefined;
  readonly origin: Origin;
}

type Settled =
  | { readonly session: Session; readonly isNew: boolean }
  | Extract<SocialOutcome, { kind: 'link-required' }>;

/** @returns undefined when another request made the account meanwhile */
function settle(deps: SocialDeps, arrival: Arrival): Promise<Settled | undefined> {
  const { provider, identity } = arrival;
  return deps.db.transact(async (tx) => {
    const link = await findLink(tx, provider.name, identity.subject);
    if (link === undefined) return welcome(deps, tx, arrival);
    const { email, displayName } = identity;
    await recordLinkUse(tx, { id: link.id, email, displayName, atMs: deps.clock.nowMs() });
    return { session: await open(deps, tx, { accountId: link.accountId, arrival }), isNew: false };
  });
}

/** A person whom the provider sends for the first time. */
async function welcome(deps: SocialDeps, tx: Tx, arrival: Arrival): Promise<Settled | undefined> {
  const { provider, identity, surface } = arrival;
  const { email, subject, displayName } = identity;
  if (email === undefined || !identity.isEmailVerified) throw refusal('ProviderUnverified');
  const known = await findAddressed(tx, email, PUBLIC_ORGANIZATION_ID);
  if (known.verifiedId !== undefined) {
    const issuer = provider.upstream.metadata.issuer;
    const payload = { provider: provider.name, issuer, subject, email, displayName, surface };
    const linkPendingToken = await deps.pending.issue(tx, { subject: known.verifiedId, payload });
    return { kind: 'link-required', linkPendingToken };
  }
  if (known.isAwaited) throw refusal('ExistingUnverified');
  if (surface === 'wallet') throw refusal('NoExistingAccount');
  const accountId = await register(deps, tx, { ...arrival, email });
  if (accountId === undefined) return undefined;
  return { session: await open(deps, tx, { accountId, arrival }), isNew: true };
}

async function register(
  deps: SocialDeps,
  tx: Tx,
  { provider, identity, email, origin }: Arrival & { readonly email: string },
): Promise<string | undefined> {
  const organization = await requirePublicOrganization(tx);
  const [accountId, identityId] = [randomUUIDv7(), randomUUIDv7()];
  const atMs = deps.clock.nowMs();
  const { subject, displayName } = identity;
  const isMade = await insertProvisioned(tx, {
    accountId,
    identityId,
    organizationId: organization.id,
    email,
    isEmailVerified: true,
    displayName: displayName ?? email,
    isProfileComplete: true,
    via: 'SocialLogin',
    atMs,
  });
  const link = { id: randomUUIDv7(), accountId, provider: provider.name, subject, email, displayName, atMs };
  if (!isMade) return undefined;
  // Thrown, so that the account is not kept without its connection.
  if (!(await insertLink(tx, link))) throw refusal('INVALID_STATE');
  await appendAudit(tx, {
    organizationId: organization.id,
    occurredAtMs: atMs,
    type: 'SelfRegistration',
    identityId,
    platformUserId: accountId,
    origin,
    success: true,
    details: { method: provider.name },
  });
  return accountId;
}

interface Entry {
  readonly accountId: string;
  readonly arrival: Pick<Arrival, 'surface' | 'returnTo' | 'origin'> & {
    readonly provider: { readonly name: string };
  };
  /** When a strong proof was given besides, in milliseconds of the epoch. */
  readonly strongProofAtMs?: number;
}

/**
 * Opens the session of an account that a provider signs in: of the consumer tier, or that of its destination.
 * @throws NOT_A_MEMBER
 */
export async function open(
  { clock }: Pick<SocialDeps, 'clock'>,
  tx: Tx,
  { accountId, arrival, strongProofAtMs }: Entry,
): Promise<Session> {
  const { surface, returnTo, origin, provider } = arrival;
  const account = await lockAccount(tx, accountId);
  if (account?.isActive !== true) throw refusal('NOT_A_MEMBER');
  const chosen = chooseMembership(account, await listMemberships(tx, account.id), undefined);
  const membership = chosen && (await lockMembership(tx, chosen));
  if (membership === undefined) throw refusal('NOT_A_MEMBER');
  const { roles, orgType } = membership;
  const isConsumer = surface === 'wallet' || returnTo === undefined;
  const tier = resolveTier({ tier: isConsumer ? 'consumer' : undefined, returnTo, roles, orgType });
  const nowMs = clock.nowMs();
  return openSession(tx, {
    account,
    membership,
    tier: tier === 'refused' ? 'consumer' : tier,
    method: provider.name,
    amr: federatedAmr,
    basicProofAtMs: nowMs,
    strongProofAtMs,
    origin,
    nowMs,
  });
}

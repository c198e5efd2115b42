import { randomUUIDv7 } from 'node:crypto';
import type { HumanTier } from '#core/identity/tiers.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../../audit/log/store.ts';
import type { TenantDatabase } from '../../../database/schema.ts';
import { refusal } from '../../../errors.ts';
import {
  findEnabledProvider,
  type ProviderDeps,
} from '../../../organizations/identity-provider/configure.ts';
import { findProvider, recordProviderUse } from '../../../organizations/identity-provider/store.ts';
import { lockMembership } from '../../../organizations/lock-membership.ts';
import type { Organization } from '../../../organizations/organization.ts';
import { findOrganizationBySubdomain } from '../../../organizations/store.ts';
import { lockAccount } from '../../../people/accounts/store.ts';
import { secondFactorsOf } from '../../../people/means/means.ts';
import { findMeans } from '../../../people/means/store.ts';
import { findMembershipIn, insertIdentity } from '../../../people/memberships/store.ts';
import type { Origin } from '../../../requests/origin.ts';
import {
  type IssuedTokens,
  issueSession,
  type Session,
  type SessionIssuer,
} from '../../../tokens/sessions/session.ts';
import { openSession } from '../../opening/open-session.ts';
import { resolveTier } from '../../opening/tier.ts';
import type { LoginTokens, SecondStep } from '../../second-step/login-token.ts';
import { recordLink } from '../record.ts';
import { federatedAmr, type ProviderAnswer } from '../social/sign-in.ts';
import type { LinkPendingTokens, PendingLink } from '../state.ts';
import {
  bindExternalIdentity,
  type ExternalIdentity,
  findAddressed,
  findExternalIdentity,
  insertProvisioned,
  isProfileComplete,
} from '../store.ts';
import { identityOf, type UpstreamIdentity } from '../upstream/identity.ts';
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

export interface OrganizationDeps extends VisitDeps, SessionIssuer {
  readonly identityProvider: ProviderDeps;
  readonly pending: LinkPendingTokens;
  readonly loginTokens: LoginTokens;
  /** Called after the person was notified. */
  readonly notifyInboxes: () => void;
}

interface SignInStart {
  readonly orgSubdomain: string;
  readonly redirectUrl: string | undefined;
  /** What the state is bound to. */
  readonly browser: string;
}

/** @throws ORGANIZATION_SIGN_IN_UNAVAILABLE, RETURN_ADDRESS_REFUSED */
export async function beginOrganizationSignIn(
  deps: OrganizationDeps,
  start: SignInStart,
): Promise<BegunVisit> {
  const organization = await requireOrganization(deps, start.orgSubdomain);
  const { upstream } = await requireEnabled(deps, organization);
  const { redirectUrl, browser } = start;
  const payload = {
    intent: 'organization',
    redirectUri: `${deps.baseUrl}/api/auth/callback/${organization.subdomain}`,
    browser,
    surface: 'app',
    returnTo: redirectUrl === undefined ? undefined : requireDestination(deps, redirectUrl),
  } as const;
  return deps.db.transact((tx) => beginVisit(deps, tx, { source: organization.id, upstream, payload }));
}

async function requireOrganization({ db }: OrganizationDeps, subdomain: string): Promise<Organization> {
  const organization = await findOrganizationBySubdomain(db.read, subdomain.trim().toLowerCase());
  if (organization?.status !== 'Active') throw refusal('ORGANIZATION_SIGN_IN_UNAVAILABLE');
  return organization;
}

async function requireEnabled(deps: OrganizationDeps, { id }: Organization) {
  const found = await findEnabledProvider(deps.identityProvider, id);
  if (found === undefined) throw refusal('ORGANIZATION_SIGN_IN_UNAVAILABLE');
  return found;
}

interface SignInEnd {
  readonly orgSubdomain: string;
  readonly answer: ProviderAnswer;
  /** What the state must be bound to. */
  readonly browser: string | undefined;
  readonly origin: Origin;
}

interface Entered {
  readonly kind: 'signed-in';
  readonly tokens: IssuedTokens;
  readonly identityId: string;
  readonly isNew: boolean;
  readonly isProfileComplete: boolean;
}

export type OrganizationOutcome =
  | Entered
  | (SecondStep & { readonly kind: 'second-step'; readonly identityId: string })
  | { readonly kind: 'link-required'; readonly linkPendingToken: string };

/** A sign-in that has ended, and where it leads. */
interface Ended {
  readonly outcome: OrganizationOutcome;
  readonly returnTo: string | undefined;
}

/**
 * Ends a sign-in by the provider of an organisation. A person is known by issuer and subject in this organisation alone,
 * because the provider can write any address into its tokens. An address that has an account elsewhere gives a token that
 * its owner confirms.
 *
 * @throws ORGANIZATION_SIGN_IN_UNAVAILABLE, INVALID_STATE, PROVIDER_REFUSED, ExistingUnverified, NOT_A_MEMBER
 */
export async function endOrganizationSignIn(
  deps: OrganizationDeps,
  { orgSubdomain, answer, browser, origin }: SignInEnd,
): Promise<Ended> {
  const organization = await requireOrganization(deps, orgSubdomain);
  const isTheirs = ({ subject, payload }: Visit) =>
    payload.intent === 'organization' && subject === organization.id && payload.browser === browser;
  const visit = await takeVisit(deps, answer.state, isTheirs);
  const { upstream } = await requireEnabled(deps, organization);
  const { state, ...parameters } = answer;
  const redemption = { upstream, visit, state, parameters, organizationId: organization.id, origin };
  const identity = await redeemVisit(deps, redemption, async ({ claims }) => identityOf(claims));
  const { issuer } = upstream.metadata;
  const { returnTo } = visit.payload;
  const arrival = { organization, issuer, identity, returnTo, origin };
  const settled = (await settle(deps, arrival)) ?? (await settle(deps, arrival));
  deps.notifyInboxes();
  if (settled === undefined) throw refusal('ExistingUnverified');
  if (!('session' in settled)) return { outcome: settled, returnTo };
  const { session, ...entered } = settled;
  return { outcome: { kind: 'signed-in', tokens: issueSession(deps, session), ...entered }, returnTo };
}

interface Arrival {
  readonly organization: Organization;
  readonly issuer: string;
  readonly identity: UpstreamIdentity;
  readonly returnTo: string | undefined;
  readonly origin: Origin;
}

type Settled =
  | (Omit<Entered, 'kind' | 'tokens'> & { readonly session: Session })
  | Exclude<OrganizationOutcome, Entered>;

/** @returns undefined when another account of the organisation has the address */
function settle(deps: OrganizationDeps, arrival: Arrival): Promise<Settled | undefined> {
  const { organization, issuer, identity } = arrival;
  return deps.db.transact(async (tx) => {
    const key = { organizationId: organization.id, issuer, subject: identity.subject };
    const known = await findExternalIdentity(tx, key);
    await recordProviderUse(tx, organization.id, deps.clock.nowMs());
    return known === undefined
      ? welcome(deps, tx, arrival)
      : enter(deps, tx, { known, arrival, isNew: false });
  });
}

interface Entry {
  readonly known: ExternalIdentity;
  readonly arrival: Arrival;
  readonly isNew: boolean;
}

/** Signs in a member, who confirms it by a second factor where the account has one. */
async function enter(deps: OrganizationDeps, tx: Tx, { known, arrival, isNew }: Entry): Promise<Settled> {
  const { accountId, identityId } = known;
  // An administrator has removed the person; the provider does not bring them back.
  if (known.isDeleted) throw refusal('NOT_A_MEMBER');
  const { organization, returnTo, origin } = arrival;
  const isComplete = await isProfileComplete(tx, identityId);
  const methods = secondFactorsOf(await findMeans(tx, accountId));
  const found = await requireMember(tx, { accountId, identityId, organizationId: organization.id });
  const { roles, orgType } = found.membership;
  const wanted = resolveTier({ returnTo, roles, orgType });
  const tier: HumanTier = wanted === 'refused' ? 'consumer' : wanted;
  if (methods.length > 0) {
    const payload = { identityId, organizationId: organization.id, tier };
    const loginToken = await deps.loginTokens.issue(tx, { subject: accountId, payload });
    return { kind: 'second-step', loginToken, methods, identityId };
  }
  const nowMs = deps.clock.nowMs();
  const proofs = { basicProofAtMs: nowMs, strongProofAtMs: undefined };
  const opening = { ...found, tier, method: 'oidc', amr: federatedAmr, ...proofs, origin, nowMs };
  return { session: await openSession(tx, opening), identityId, isNew, isProfileComplete: isComplete };
}

async function requireMember(
  tx: Tx,
  key: { readonly accountId: string; readonly identityId: string; readonly organizationId: string },
) {
  const account = await lockAccount(tx, key.accountId);
  const membership = account?.isActive === true ? await lockMembership(tx, key) : undefined;
  if (account === undefined || membership === undefined) throw refusal('NOT_A_MEMBER');
  return { account, membership };
}

/** A person whom the provider sends for the first time. */
async function welcome(deps: OrganizationDeps, tx: Tx, arrival: Arrival): Promise<Settled | undefined> {
  const { organization, issuer, identity } = arrival;
  const { email, subject, displayName } = identity;
  const known =
    email === undefined
      ? { verifiedId: undefined, isAwaited: false }
      : await findAddressed(tx, email, organization.id);
  if (known.isAwaited) throw refusal('ExistingUnverified');
  if (email !== undefined && identity.isEmailVerified && known.verifiedId !== undefined) {
    const payload = {
      organizationId: organization.id,
      issuer,
      subject,
      email,
      displayName,
      surface: 'app',
    } as const;
    const linkPendingToken = await deps.pending.issue(tx, { subject: known.verifiedId, payload });
    return { kind: 'link-required', linkPendingToken };
  }
  const external = await provision(deps, tx, arrival);
  return external && enter(deps, tx, { known: external, arrival, isNew: true });
}

/**
 * Makes the account of a person whom the provider of an organisation sends. Its address stays unverified, and opens this
 * organisation alone: an administrator's provider is no proof to others.
 */
async function provision(
  { clock }: OrganizationDeps,
  tx: Tx,
  { organization, issuer, identity, origin }: Arrival,
): Promise<ExternalIdentity | undefined> {
  const { email, displayName, subject } = identity;
  const [accountId, identityId] = [randomUUIDv7(), randomUUIDv7()];
  const atMs = clock.nowMs();
  const isMade = await insertProvisioned(tx, {
    accountId,
    identityId,
    organizationId: organization.id,
    email,
    isEmailVerified: false,
    displayName: displayName ?? email ?? subject.slice(0, 100),
    isProfileComplete: displayName !== undefined && email !== undefined,
    via: 'Oidc',
    external: { issuer, subject },
    atMs,
  });
  if (!isMade) return undefined;
  await appendAudit(tx, {
    organizationId: organization.id,
    occurredAtMs: atMs,
    type: 'OidcFirstLogin',
    identityId,
    platformUserId: accountId,
    origin,
    success: true,
    details: { issuer },
  });
  return { accountId, identityId, isDeleted: false };
}

interface ProvedLink {
  readonly accountId: string;
  readonly payload: PendingLink;
  readonly origin: Origin;
  readonly provedAtMs: number;
}

/**
 * Lets the provider of an organisation sign in an account whose owner has proved it, and opens the session.
 * @throws ORGANIZATION_SIGN_IN_UNAVAILABLE, IDENTITY_LINKED, NOT_A_MEMBER
 */
export async function openLinkedMembership(
  deps: OrganizationDeps,
  tx: Tx,
  { accountId, payload, origin, provedAtMs }: ProvedLink,
): Promise<Session> {
  const { organizationId = '', issuer, subject, email, displayName } = payload;
  const provider = await findProvider(tx, organizationId);
  if (provider?.isEnabled !== true || provider.metadata?.issuer !== issuer) {
    throw refusal('ORGANIZATION_SIGN_IN_UNAVAILABLE');
  }
  const atMs = deps.clock.nowMs();
  const account = await lockAccount(tx, accountId);
  const present = await findMembershipIn(tx, organizationId, accountId);
  const identityId =
    present?.identityId ??
    (await insertIdentity(tx, {
      id: randomUUIDv7(),
      organizationId,
      platformUserId: accountId,
      email,
      displayName: displayName ?? account?.displayName ?? email,
      roles: ['User'],
      provisionedVia: 'Oidc',
      createdAtMs: atMs,
    }));
  const other = await findExternalIdentity(tx, { organizationId, issuer, subject });
  const isFree = other === undefined || other.identityId === identityId;
  if (
    identityId === undefined ||
    !isFree ||
    !(await bindExternalIdentity(tx, identityId, { issuer, subject }))
  ) {
    throw refusal('IDENTITY_LINKED');
  }
  const providerName = provider.displayName;
  await recordLink(tx, { accountId, identityId, origin, event: 'linked', provider: providerName, atMs });
  const found = await requireMember(tx, { accountId, identityId, organizationId });
  const { roles, orgType } = found.membership;
  const tier = resolveTier({ roles, orgType }) === 'platform' ? 'platform' : 'consumer';
  const proofs = { basicProofAtMs: atMs, strongProofAtMs: provedAtMs };
  return openSession(tx, {
    ...found,
    tier,
    method: 'oidc',
    amr: federatedAmr,
    ...proofs,
    origin,
    nowMs: atMs,
  });
}

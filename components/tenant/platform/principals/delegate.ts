import type { Caller } from '#core/identity/claims.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { lockMembership } from '../../organizations/lock-membership.ts';
import type { Membership } from '../../people/memberships/membership.ts';
import { findMembership, findMembershipIn } from '../../people/memberships/store.ts';
import type { Delegation } from '../../tokens/claims/claims.ts';
import { OAuthError } from '../../tokens/oauth/oauth.ts';
import { grantScopes, type Parameters } from '../../tokens/oauth/parameters.ts';
import { findNotBefore } from '../../tokens/revocations/store.ts';
import {
  authenticateClient,
  type MintDeps,
  type MintRequest,
  present,
  type ServiceTokenAnswer,
} from './mint.ts';
import type { Principal } from './principal.ts';

const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const accessToken = 'urn:ietf:params:oauth:token-type:access_token';
const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The answer of RFC 8693, section 2.2.1. */
interface DelegatedTokenAnswer extends ServiceTokenAnswer {
  readonly issued_token_type: typeof accessToken;
}

/**
 * Issues a token for a service that acts for a user, who is named by a user token, or by id for a principal with the
 * scope `tenant:delegate`. The subject of the token is the service.
 * @throws OAuthError
 */
export async function mintDelegatedToken(
  deps: MintDeps,
  request: MintRequest,
): Promise<DelegatedTokenAnswer> {
  const { parameters } = request;
  const grantType = parameters.get('grant_type') ?? tokenExchange;
  if (grantType !== tokenExchange && grantType !== 'client_credentials') {
    throw new OAuthError(400, 'unsupported_grant_type', 'this endpoint supports only token exchange');
  }
  const { principal, credential } = await authenticateClient(deps, request);
  const scopes = grantScopes(parameters.get('scope'), principal.scopes);
  const subject = await findSubject(deps, parameters);
  const user = await findUser(deps, { parameters, principal, subject });
  const token = await deps.db.transact(async (tx) => {
    // Issued while the membership is locked, so that a later suspension has a later time than the token.
    const locked = await lockMembership(tx, user);
    if (locked === undefined) throw inactiveUser();
    await assertNotRevoked(tx, locked, { subject, nowMs: deps.clock.nowMs() });
    const delegation = delegationOf(locked, subject);
    await appendAudit(tx, {
      organizationId: user.organizationId,
      occurredAtMs: deps.clock.nowMs(),
      type: 'TokenIssued',
      identityId: user.identityId,
      platformUserId: user.platformUserId,
      origin: request.origin,
      success: true,
      details: { delegated: true, clientId: principal.clientId, credential, scopes },
    });
    return deps.issuer.forService(principal, { scopes, delegation });
  });
  return { ...present(token, scopes), issued_token_type: accessToken };
}

function inactiveUser(): OAuthError {
  return new OAuthError(401, 'invalid_grant', 'the user is unknown or not active');
}

/** A person named by id acts with the roles of the membership, else with those of the token. */
function delegationOf(membership: Membership, subject: Caller | undefined): Delegation {
  const { identityId, platformUserId, organizationId, roles } = membership;
  const carried = subject === undefined ? roles : roles.filter((role) => subject.roles.includes(role));
  return { userId: identityId, platformUserId, organizationId, roles: carried, familyId: subject?.sessionId };
}

/**
 * A revocation after subject_token was verified would precede the delegated token and not end it.
 * @throws OAuthError invalid_grant
 */
async function assertNotRevoked(
  tx: Transactor<TenantDatabase>,
  { identityId, platformUserId, organizationId }: Membership,
  { subject, nowMs }: { readonly subject: Caller | undefined; readonly nowMs: number },
): Promise<void> {
  const notBeforeMs = await findNotBefore(tx, [identityId, platformUserId, organizationId], nowMs);
  if (subject === undefined || notBeforeMs === undefined || subject.issuedAtMs > notBeforeMs) return;
  throw new OAuthError(401, 'invalid_grant', 'subject_token was revoked');
}

/** The caller of subject_token; undefined when there is none. */
async function findSubject(deps: MintDeps, parameters: Parameters): Promise<Caller | undefined> {
  const subjectToken = parameters.get('subject_token');
  if (subjectToken === undefined) return undefined;
  const caller = await deps.findCaller(subjectToken);
  if (caller?.restriction !== undefined) {
    throw new OAuthError(401, 'invalid_grant', 'subject_token is restricted until its owner has acted');
  }
  if (caller?.kind === 'user') return caller;
  throw new OAuthError(401, 'invalid_grant', 'subject_token is not a valid user token');
}

interface NamedSubject {
  readonly parameters: Parameters;
  readonly principal: Principal;
  readonly subject: Caller | undefined;
}

async function findUser(
  deps: MintDeps,
  { parameters, principal, subject }: NamedSubject,
): Promise<Membership> {
  const user =
    subject === undefined
      ? await findNamedUser(deps, parameters, principal)
      : await findMembership(deps.db.read, subject.subject);
  if (user?.isActive !== true) throw inactiveUser();
  return user;
}

async function findNamedUser(
  deps: MintDeps,
  parameters: Parameters,
  principal: Principal,
): Promise<Membership | undefined> {
  const userId = parameters.get('delegated_user_id');
  if (userId === undefined) {
    throw new OAuthError(400, 'invalid_request', 'subject_token or delegated_user_id is required');
  }
  if (!principal.scopes.includes('tenant:delegate')) {
    throw new OAuthError(400, 'invalid_scope', 'delegated_user_id requires the scope tenant:delegate');
  }
  const organizationId = parameters.get('delegated_organization_id');
  if (![userId, organizationId ?? userId].every((id) => uuidPattern.test(id))) return undefined;
  return organizationId === undefined
    ? findMembership(deps.db.read, userId)
    : findMembershipIn(deps.db.read, organizationId, userId);
}

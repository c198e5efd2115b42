import { appendAudit } from '../../audit/log/store.ts';
import { lockMembership } from '../../organizations/lock-membership.ts';
import type { Membership } from '../../people/memberships/membership.ts';
import { findMembership, findMembershipIn } from '../../people/memberships/store.ts';
import type { Delegation } from '../../tokens/claims/claims.ts';
import { OAuthError } from '../../tokens/oauth/oauth.ts';
import { grantScopes, type Parameters } from '../../tokens/oauth/parameters.ts';
import {
  authenticateClient,
  type MintDeps,
  type MintRequest,
  present,
  type ServiceTokenAnswer,
} from './mint.ts';
import type { Principal } from './principal.ts';

const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Issues a token for a service that acts for a user, who is named by a user token, or by id for a principal with the
 * scope `tenant:delegate`. The subject of the token is the service.
 * @throws OAuthError
 */
export async function mintDelegatedToken(deps: MintDeps, request: MintRequest): Promise<ServiceTokenAnswer> {
  const { parameters } = request;
  const grantType = parameters.get('grant_type') ?? tokenExchange;
  if (grantType !== tokenExchange && grantType !== 'client_credentials') {
    throw new OAuthError(400, 'unsupported_grant_type', 'this endpoint supports only token exchange');
  }
  const { principal, credential } = await authenticateClient(deps, request);
  const scopes = grantScopes(parameters.get('scope'), principal.scopes);
  const user = await findUser(deps, parameters, principal);
  const delegation: Delegation = { userId: user.identityId, organizationId: user.organizationId };
  const token = await deps.db.transact(async (tx) => {
    // Issued while the membership is locked, so that a later suspension has a later time than the token.
    if ((await lockMembership(tx, user)) === undefined) throw inactiveUser();
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
  return present(token, scopes);
}

function inactiveUser(): OAuthError {
  return new OAuthError(401, 'invalid_grant', 'the user is unknown or not active');
}

async function findUser(deps: MintDeps, parameters: Parameters, principal: Principal): Promise<Membership> {
  const subjectToken = parameters.get('subject_token');
  const user =
    subjectToken === undefined
      ? await findNamedUser(deps, parameters, principal)
      : await findTokenUser(deps, subjectToken);
  if (user?.isActive !== true) throw inactiveUser();
  return user;
}

async function findTokenUser(deps: MintDeps, subjectToken: string): Promise<Membership | undefined> {
  const caller = await deps.findCaller(subjectToken);
  if (caller?.kind !== 'user') {
    throw new OAuthError(401, 'invalid_grant', 'subject_token is not a valid user token');
  }
  return findMembership(deps.db.read, caller.subject);
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

import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Scope } from '#core/identity/scopes.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import { refusal } from '../errors.ts';

type UseScope = Extract<Scope, 'wallets:sign' | 'wallets:decrypt'>;

/**
 * The caller for whom a service calls. A delegated service token stands for its person, who is judged as if they called:
 * only over a connection of the service that the token was issued to, and within its scopes.
 * @throws AppError unauthenticated without x-subject-token; forbidden DELEGATION_INVALID
 */
export function subjectOf(deps: { readonly log: Logger }, context: RpcContext, scope: UseScope): Caller {
  const { subject, peer } = context;
  if (subject === undefined) {
    throw new AppError('unauthenticated', genericCode('unauthenticated'), 'x-subject-token is required');
  }
  if (subject.delegation === undefined) return subject;
  const reason = judgeDelegation(subject, peer.clientId, scope);
  if (reason === undefined) return personBehind(subject, subject.delegation);
  deps.log.warn(
    { securityAudit: 'wallet.delegation', reason, service: peer.clientId, tokenService: subject.clientId },
    'a delegated token was refused',
  );
  throw refusal('DELEGATION_INVALID', { details: { reason } });
}

function judgeDelegation(subject: Caller, clientId: string, scope: UseScope): string | undefined {
  if (subject.clientId !== clientId) return 'FOREIGN_CONNECTION';
  if (!subject.scopes.includes(scope)) return 'SCOPE_MISSING';
  return subject.delegation?.platformUserId === undefined ? 'PERSON_MISSING' : undefined;
}

function personBehind(token: Caller, delegation: NonNullable<Caller['delegation']>): Caller {
  const { userId, platformUserId, organizationId, roles, sessionId } = delegation;
  return {
    ...token,
    kind: 'user',
    subject: userId,
    platformUserId,
    organizationId,
    roles,
    sessionId,
    tier: roles.length > 0 ? 'platform' : 'consumer',
    scopes: [],
    canSignSystem: false,
    delegation: undefined,
  };
}

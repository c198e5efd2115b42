import type { Caller } from './claims.ts';
import type { Role } from './roles.ts';
import { CITIZEN_WALLET_AUDIENCE } from './tiers.ts';
import { SYSTEM_ORGANIZATION_ID } from './well-known.ts';

/** Requirements that a route can make of its caller (specification document 2, section 5). */
export const POLICY_NAMES = [
  'Anonymous',
  'RequireAuthenticated',
  'RequirePlatformUser',
  'RequireConsumerAudience',
  'RequirePlatformAudience',
  'RequireService',
  'RequireOperator',
  'RequireBlueprintService',
  'RequireAdministrator',
  'RequireAuditor',
  'RequireSystemAdmin',
  'RequirePersonaCrypto',
  'RequireDelegatedAuthority',
  'CanManageRegisters',
  'CanCreateSystemRegisters',
  'CanManagePeers',
  'CanWriteDockets',
  'CanManageBlueprints',
  'CanPublishBlueprints',
] as const;
export type PolicyName = (typeof POLICY_NAMES)[number];

export type Decision = 'allow' | 'unauthenticated' | 'forbidden';

type Rule = (caller: Caller) => boolean;

function isService(caller: Caller): boolean {
  return caller.kind === 'service' && caller.tier === 'service';
}

/** Client id of the Kubernetes operator. Internal routes admit no other client. */
const OPERATOR_CLIENT_ID = 'service-operator';
/** Client id of the blueprint service, which rehearses workflows in registers of its own. */
const BLUEPRINT_CLIENT_ID = 'service-blueprint';

function hasRole(caller: Caller, ...roles: readonly Role[]): boolean {
  return caller.tier === 'platform' && roles.some((role) => caller.roles.includes(role));
}

function isSystemAdmin(caller: Caller): boolean {
  return hasRole(caller, 'SystemAdmin') && caller.organizationId === SYSTEM_ORGANIZATION_ID;
}

const RULES: Readonly<Record<Exclude<PolicyName, 'Anonymous'>, Rule>> = {
  RequireAuthenticated: () => true,
  RequirePlatformUser: (caller) => caller.kind === 'user' && caller.platformUserId !== undefined,
  RequireConsumerAudience: (caller) => caller.claims.aud.includes(CITIZEN_WALLET_AUDIENCE),
  RequirePlatformAudience: (caller) => caller.tier === 'platform',
  RequireService: isService,
  RequireOperator: (caller) => isService(caller) && caller.clientId === OPERATOR_CLIENT_ID,
  RequireBlueprintService: (caller) =>
    isService(caller) && caller.clientId === BLUEPRINT_CLIENT_ID && caller.delegation === undefined,
  RequireAdministrator: (caller) => hasRole(caller, 'Administrator', 'SystemAdmin'),
  RequireAuditor: (caller) => hasRole(caller, 'Auditor', 'Administrator', 'SystemAdmin'),
  RequireSystemAdmin: isSystemAdmin,
  RequirePersonaCrypto: (caller) => isService(caller) && caller.scopes.includes('persona:crypto'),
  RequireDelegatedAuthority: (caller) => isService(caller) && caller.delegation !== undefined,
  CanManageRegisters: (caller) =>
    caller.organizationId !== undefined && hasRole(caller, 'Administrator', 'SystemAdmin'),
  CanCreateSystemRegisters: isSystemAdmin,
  CanManagePeers: (caller) => caller.organizationId !== undefined || isService(caller),
  CanWriteDockets: (caller) => isService(caller) && caller.scopes.includes('dockets:write'),
  CanManageBlueprints: (caller) =>
    isService(caller) ||
    (caller.organizationId !== undefined && hasRole(caller, 'Administrator', 'Designer', 'SystemAdmin')),
  CanPublishBlueprints: (caller) =>
    caller.kind === 'user' &&
    caller.organizationId !== undefined &&
    (hasRole(caller, 'Administrator', 'SystemAdmin') || caller.claims.can_publish_blueprint === true),
};

/** Whether a caller passes a policy. Without a caller, every policy but Anonymous refuses as unauthenticated. */
export function decide(policy: PolicyName, caller: Caller | undefined): Decision {
  if (policy === 'Anonymous') return 'allow';
  if (caller === undefined) return 'unauthenticated';
  return RULES[policy](caller) ? 'allow' : 'forbidden';
}

/**
 * RequireCallerOrganization: the organisation of the route is the caller's own, or the caller is a SystemAdmin of the
 * system organisation.
 */
export function mayActFor(caller: Caller, organizationId: string): boolean {
  if (isSystemAdmin(caller)) return true;
  return caller.kind === 'user' && caller.organizationId === organizationId;
}

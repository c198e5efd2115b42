import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, addRoute, empty, json, pageWindow, paging } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import {
  getOrganization,
  isSystemAdministrator,
  ownOrganization,
  requireCallerOrganization,
} from '../../organizations/authority.ts';
import { originOf } from '../../requests/origin.ts';
import { findUser, listUsers } from '../memberships/store.ts';
import { type AdministerDeps, removeUser, setUserRoles, setUserStatus, type UserAct } from './administer.ts';
import { type CreateUserDeps, createUser } from './create-user.ts';
import { newUserSchema, presentUser, rolesSchema, userSchema } from './schemas.ts';
import { unlockUser } from './unlock.ts';

const url = '/api/organizations/:organizationId/users';
const tag = 'Users';
const reads = { tag, method: 'GET', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
const writes = { tag, policy: 'RequireAdministrator', rateLimit: 'Strict' } as const;
const ofOrganization = z.object({ organizationId: identifier });
const ofUser = z.object({ organizationId: identifier, userId: identifier });

export interface UserDeps extends CreateUserDeps, AdministerDeps {
  readonly idempotency: Idempotency;
}

export function mountUsers(app: App, deps: UserDeps): void {
  mountCreation(app, deps);
  mountReads(app, deps);
  mountStatus(app, deps);
  mountMembership(app, deps);
}

function mountCreation(app: App, deps: UserDeps): void {
  addRoute(app, {
    ...writes,
    method: 'POST',
    path: url,
    operationId: 'createOrganizationUser',
    summary: 'Add a person to an organisation',
    params: ofOrganization,
    body: {
      schema: newUserSchema,
      example: {
        email: 'ada@example.org',
        displayName: 'Ada Lovelace',
        password: 'blue kettle winter parade',
        roles: ['Designer'],
      },
    },
    idempotency: deps.idempotency,
    resource: ownOrganization(() => deps.db.read),
    answers: { 201: json('The user.', userSchema) },
    refusals: [
      ...refusals('FOREIGN_ORGANIZATION', 'ORGANIZATION_NOT_FOUND', 'ALREADY_A_MEMBER'),
      ...refusals('UNKNOWN_ROLE', 'ROLE_NOT_GRANTABLE', 'PASSWORD_REFUSED'),
    ],
    handle: async ({ caller, params, body, request }) => {
      const newUser = { ...body, ...params, origin: originOf(request) };
      return presentUser(await createUser(deps, caller, newUser));
    },
  });
}

function mountReads(app: App, deps: UserDeps): void {
  const users = z.array(userSchema);
  addRoute(app, {
    ...reads,
    path: url,
    operationId: 'listOrganizationUsers',
    summary: 'Users of an organisation',
    params: ofOrganization,
    query: paging({ defaultSize: 25, outOfRange: 'clamp' }),
    resource: async ({ caller, params }) => {
      requireUserReader(caller, params.organizationId);
      return getOrganization(deps.db.read, params.organizationId);
    },
    answers: {
      200: json(
        'A page of users.',
        z.object({ users, items: users, totalCount: z.int(), page: z.int(), pageSize: z.int() }),
      ),
    },
    refusals: refusals('FOREIGN_ORGANIZATION', 'ORGANIZATION_NOT_FOUND'),
    handle: async ({ resource, query }) => {
      const found = await listUsers(deps.db.read, resource.id, pageWindow(query));
      const items = found.users.map(presentUser);
      return { users: items, items, totalCount: found.totalCount, ...query };
    },
  });
  addRoute(app, {
    ...reads,
    path: `${url}/:userId`,
    operationId: 'getOrganizationUser',
    summary: 'One user of an organisation',
    params: ofUser,
    resource: async ({ caller, params }) => {
      requireUserReader(caller, params.organizationId);
      const user = await findUser(deps.db.read, params.organizationId, params.userId);
      if (user === undefined) throw refusal('USER_NOT_FOUND');
      return user;
    },
    answers: { 200: json('The user.', userSchema) },
    refusals: refusals('FOREIGN_ORGANIZATION', 'USER_NOT_FOUND'),
    handle: ({ resource }) => presentUser(resource),
  });
}

const changeRefusals = [
  ...refusals('FOREIGN_ORGANIZATION', 'ORGANIZATION_NOT_FOUND', 'USER_NOT_FOUND'),
  ...refusals('USER_OUTRANKS', 'LAST_ADMINISTRATOR'),
];

function mountStatus(app: App, deps: UserDeps): void {
  const route = { ...writes, method: 'POST', params: ofUser } as const;
  addRoute(app, {
    ...route,
    path: `${url}/:userId/unlock`,
    operationId: 'unlockOrganizationUser',
    summary: 'Unlock an account after failed sign-ins',
    answers: { 200: json('The account is unlocked.', z.object({ success: z.boolean() })) },
    refusals: refusals('FOREIGN_ORGANIZATION', 'USER_NOT_FOUND'),
    handle: async ({ caller, params, request }) => {
      await unlockUser(deps, caller, { ...params, origin: originOf(request) });
      return { success: true };
    },
  });
  addRoute(app, {
    ...route,
    path: `${url}/:userId/suspend`,
    operationId: 'suspendOrganizationUser',
    summary: 'Suspend a user in an organisation',
    answers: { 200: json('The suspended user.', userSchema) },
    refusals: changeRefusals,
    handle: async (input) => presentUser(await setUserStatus(deps, actOf(input), 'Suspended')),
  });
  addRoute(app, {
    ...route,
    path: `${url}/:userId/reactivate`,
    operationId: 'reactivateOrganizationUser',
    summary: 'Reactivate a suspended user of an organisation',
    answers: { 200: json('The active user.', userSchema) },
    refusals: changeRefusals,
    handle: async (input) => presentUser(await setUserStatus(deps, actOf(input), 'Active')),
  });
}

function mountMembership(app: App, deps: UserDeps): void {
  const route = { ...writes, params: ofUser } as const;
  addRoute(app, {
    ...route,
    method: 'PUT',
    path: `${url}/:userId/role`,
    operationId: 'updateOrganizationUserRoles',
    summary: 'Replace the roles of a user in an organisation',
    body: { schema: rolesSchema, example: { roles: ['Designer', 'Auditor'] } },
    answers: { 200: json('The user with the new roles.', userSchema) },
    refusals: [...changeRefusals, ...refusals('UNKNOWN_ROLE', 'ROLE_NOT_GRANTABLE')],
    handle: async (input) => {
      const { role, roles = [] } = input.body;
      const names = role === undefined ? roles : [role];
      return presentUser(await setUserRoles(deps, actOf(input), names));
    },
  });
  addRoute(app, {
    ...route,
    method: 'DELETE',
    path: `${url}/:userId`,
    operationId: 'removeOrganizationUser',
    summary: 'Remove a user from an organisation',
    answers: { 204: empty('The user is removed.') },
    refusals: changeRefusals,
    handle: (input) => removeUser(deps, actOf(input)),
  });
}

interface UserRequest {
  readonly caller: Caller;
  readonly params: z.output<typeof ofUser>;
  readonly request: FastifyRequest;
}

function actOf({ caller, params, request }: UserRequest): UserAct {
  return { ...params, by: caller, origin: originOf(request) };
}

/**
 * A member list contains e-mail addresses, so only administrators, designers and auditors of the organisation read it.
 */
function requireUserReader(caller: Caller, organizationId: string): void {
  requireCallerOrganization(caller, organizationId);
  const reads = caller.roles.some(
    (role) => role === 'Administrator' || role === 'Auditor' || role === 'Designer',
  );
  if (!reads && !isSystemAdministrator(caller)) throw refusal('FOREIGN_ORGANIZATION');
}

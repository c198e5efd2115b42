import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import type { Caller } from '#core/identity/claims.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, callerOf, emptyAnswer, idempotencyHeaders, pageWindow, paging } from '#kit/http/http.ts';
import { refusal } from '../../errors.ts';
import { isSystemAdministrator, requireCallerOrganization } from '../../organizations/authority.ts';
import { findOrganization } from '../../organizations/store.ts';
import { originOf } from '../../requests/origin.ts';
import { repeatable } from '../../requests/repeatable.ts';
import { findUser, listUsers } from '../memberships/store.ts';
import { type AdministerDeps, removeUser, setUserRoles, setUserStatus, type UserAct } from './administer.ts';
import { type CreateUserDeps, createUser } from './create-user.ts';
import { presentUser, userSchema } from './present.ts';
import { unlockUser } from './unlock.ts';

const roleName = z.string().max(64);

const newUserSchema = z.object({
  email: z.string().trim().max(254).pipe(z.email()),
  displayName: z.string().trim().pipe(readableName.max(200)),
  password: z.string().max(1024),
  roles: z.array(roleName).max(16).default([]),
});

const organizationParameter = z.object({ organizationId: identifier });
const userParameters = z.object({ organizationId: identifier, userId: identifier });

export interface UserDeps extends CreateUserDeps, AdministerDeps {
  readonly idempotency: Idempotency;
}

const writes = { policy: 'RequireAdministrator', rateLimit: 'Strict' } as const;
/** A single role, which is the common case, or all roles. */
const rolesSchema = z
  .object({ role: roleName.optional(), roles: z.array(roleName).min(1).max(16).optional() })
  .refine((body) => (body.role === undefined) !== (body.roles === undefined), {
    message: 'exactly one of role and roles is required',
    path: ['role'],
  });

export function mountUsers(app: App, deps: UserDeps): void {
  const tags = ['Users'];
  app.post(
    '/api/organizations/:organizationId/users',
    {
      config: { policy: 'RequireAdministrator', rateLimit: 'Strict' },
      schema: {
        operationId: 'createOrganizationUser',
        tags,
        params: organizationParameter,
        body: newUserSchema,
        headers: idempotencyHeaders,
        response: { 201: userSchema },
      },
    },
    async (request, reply) => {
      const { organizationId } = request.params;
      const caller = callerOf(request);
      requireCallerOrganization(caller, organizationId);
      const created = await deps.idempotency.once(repeatable(request), async () => {
        const newUser = { ...request.body, organizationId, origin: originOf(request) };
        return presentUser(await createUser(deps, caller, newUser));
      });
      return reply.code(201).send(created);
    },
  );
  const users = z.array(userSchema);
  app.get(
    '/api/organizations/:organizationId/users',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listOrganizationUsers',
        tags,
        params: organizationParameter,
        querystring: paging({ defaultSize: 25, outOfRange: 'clamp' }),
        response: {
          200: z.object({ users, items: users, totalCount: z.int(), page: z.int(), pageSize: z.int() }),
        },
      },
    },
    async (request) => {
      const { organizationId } = request.params;
      requireUserReader(callerOf(request), organizationId);
      if ((await findOrganization(deps.db.read, organizationId)) === undefined) {
        throw refusal('ORGANIZATION_NOT_FOUND');
      }
      const found = await listUsers(deps.db.read, organizationId, pageWindow(request.query));
      const items = found.users.map(presentUser);
      return { users: items, items, totalCount: found.totalCount, ...request.query };
    },
  );
  app.post(
    '/api/organizations/:organizationId/users/:userId/unlock',
    {
      config: { policy: 'RequireAdministrator', rateLimit: 'Strict' },
      schema: {
        operationId: 'unlockOrganizationUser',
        tags,
        params: userParameters,
        response: { 200: z.object({ success: z.boolean() }) },
      },
    },
    async (request) => {
      await unlockUser(deps, callerOf(request), { ...request.params, origin: originOf(request) });
      return { success: true };
    },
  );
  mountAdministration(app, deps);
}

function actOf(request: FastifyRequest, parameters: z.output<typeof userParameters>): UserAct {
  return { ...parameters, by: callerOf(request), origin: originOf(request) };
}

/** Routes of one user of an organisation. */
function mountAdministration(app: App, deps: UserDeps): void {
  const url = '/api/organizations/:organizationId/users/:userId';
  const tags = ['Users'];
  const schema = { tags, params: userParameters, response: { 200: userSchema } };
  const reads = { policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
  app.get(
    url,
    { config: reads, schema: { operationId: 'getOrganizationUser', ...schema } },
    async (request) => {
      const { params } = request;
      requireUserReader(callerOf(request), params.organizationId);
      const user = await findUser(deps.db.read, params.organizationId, params.userId);
      if (user === undefined) throw refusal('USER_NOT_FOUND');
      return presentUser(user);
    },
  );
  app.post(
    `${url}/suspend`,
    { config: writes, schema: { operationId: 'suspendOrganizationUser', ...schema } },
    async (request) => presentUser(await setUserStatus(deps, actOf(request, request.params), 'Suspended')),
  );
  app.post(
    `${url}/reactivate`,
    { config: writes, schema: { operationId: 'reactivateOrganizationUser', ...schema } },
    async (request) => presentUser(await setUserStatus(deps, actOf(request, request.params), 'Active')),
  );
  app.put(
    `${url}/role`,
    { config: writes, schema: { operationId: 'updateOrganizationUserRoles', ...schema, body: rolesSchema } },
    async (request) => {
      const { role, roles = [] } = request.body;
      const names = role === undefined ? roles : [role];
      return presentUser(await setUserRoles(deps, actOf(request, request.params), names));
    },
  );
  const response = emptyAnswer('The user is removed.');
  app.delete(
    url,
    {
      config: writes,
      schema: { operationId: 'removeOrganizationUser', tags, params: userParameters, response },
    },
    async (request, reply) => {
      await removeUser(deps, actOf(request, request.params));
      return reply.code(204).send();
    },
  );
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

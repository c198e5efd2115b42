import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, callerOf, pageWindow, paging } from '#kit/http/http.ts';
import { refusal } from '../errors.ts';
import { isSystemAdministrator, requireCallerOrganization } from '../organizations/authority.ts';
import { findOrganization } from '../organizations/store.ts';
import { line } from '../requests/line.ts';
import { originOf } from '../requests/origin.ts';
import { repeatable } from '../requests/repeatable.ts';
import { type CreateUserDeps, createUser } from './create-user.ts';
import { presentUser, userSchema } from './present.ts';
import { listUsers } from './store.ts';
import { unlockUser } from './unlock.ts';

const newUserSchema = z.object({
  email: z.string().trim().max(254).pipe(z.email()),
  displayName: z.string().trim().pipe(line.min(1).max(200)),
  password: z.string().max(1024),
  roles: z.array(z.string().max(64)).max(16).default([]),
});

const id = z.guid().toLowerCase();
const organizationParameter = z.object({ organizationId: id });
const userParameters = z.object({ organizationId: id, userId: id });

export interface UserDeps extends CreateUserDeps {
  readonly idempotency: Idempotency;
}

export function mountUsers(app: App, deps: UserDeps): void {
  const tags = ['users'];
  app.post(
    '/api/organizations/:organizationId/users',
    {
      config: { policy: 'RequireAdministrator', rateLimit: 'Strict' },
      schema: { tags, params: organizationParameter, body: newUserSchema, response: { 201: userSchema } },
    },
    async (request, reply) => {
      const { organizationId } = request.params;
      const caller = callerOf(request);
      requireCallerOrganization(caller, organizationId);
      const created = await deps.idempotency.once(repeatable(request), async () => {
        const wanted = { ...request.body, organizationId, origin: originOf(request) };
        return presentUser(await createUser(deps, caller, wanted));
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
      schema: { tags, params: userParameters, response: { 200: z.object({ success: z.boolean() }) } },
    },
    async (request) => {
      await unlockUser(deps, callerOf(request), { ...request.params, origin: originOf(request) });
      return { success: true };
    },
  );
}

/** A member list shows e-mail addresses: only who administers, designs for or audits the organisation reads it. */
function requireUserReader(caller: Caller, organizationId: string): void {
  requireCallerOrganization(caller, organizationId);
  const reads = caller.roles.some(
    (role) => role === 'Administrator' || role === 'Auditor' || role === 'Designer',
  );
  if (!reads && !isSystemAdministrator(caller)) throw refusal('FOREIGN_ORGANIZATION');
}

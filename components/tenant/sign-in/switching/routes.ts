import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { ROLES } from '#core/identity/roles.ts';
import { type App, callerOf } from '#kit/http/http.ts';
import { noStore } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { presentTokens, tokenSchema } from '../../tokens/sessions/token-response.ts';
import { listOpenMemberships, presentMembership } from './memberships.ts';
import { type SwitchDeps, switchOrganization } from './switch.ts';

const membershipSchema = z.object({
  organizationId: identifier,
  organizationName: z.string(),
  subdomain: z.string(),
  role: z.enum(ROLES).describe('The highest role.'),
  isCurrent: z.boolean(),
});

/** Organisation switching (specification document 1, section 4). */
export function mountSwitching(app: App, deps: SwitchDeps): void {
  const tags = ['Sign-in'];
  app.get(
    '/api/auth/me/organizations',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listCurrentUserOrganizations',
        tags,
        response: { 200: z.object({ items: z.array(membershipSchema) }) },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      const memberships = await listOpenMemberships(deps.db.read, caller);
      return noStore(reply).send({ items: memberships.map((one) => presentMembership(one, caller)) });
    },
  );
  app.post(
    '/api/auth/switch-org',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Authentication' },
      schema: {
        operationId: 'switchOrganization',
        tags,
        body: z.object({ organizationId: identifier }),
        response: { 200: tokenSchema },
      },
    },
    async (request, reply) => {
      const { organizationId } = request.body;
      const input = { organizationId, origin: originOf(request) };
      return noStore(reply).send(presentTokens(await switchOrganization(deps, callerOf(request), input)));
    },
  );
}

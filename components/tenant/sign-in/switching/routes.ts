import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { unstored } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { presentTokens, tokenSchema } from '../../tokens/sessions/token-response.ts';
import { listOpenMemberships, membershipSchema, presentMembership } from './memberships.ts';
import { type SwitchDeps, switchOrganization } from './switch.ts';

const route = { tag: 'Sign-in', policy: 'RequireAuthenticated', noStore: true } as const;

/** Organisation switching (specification document 1, section 4). */
export function mountSwitching(app: App, deps: SwitchDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/auth/me/organizations',
    operationId: 'listCurrentUserOrganizations',
    summary: 'Organisations of the caller',
    rateLimit: 'Api',
    answers: { 200: json('The organisations, by name.', z.object({ items: z.array(membershipSchema) })) },
    refusals: [],
    handle: async ({ caller }) => {
      const memberships = await listOpenMemberships(deps.db.read, caller);
      return unstored({ items: memberships.map((one) => presentMembership(one, caller)) });
    },
  });
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/auth/switch-org',
    operationId: 'switchOrganization',
    summary: 'Get tokens for another organisation of the caller',
    rateLimit: 'Authentication',
    body: {
      schema: z.object({ organizationId: identifier }),
      example: { organizationId: '0197a5d2-5f00-7c11-8a3b-6e2d9c0f4a17' },
    },
    answers: { 200: json('The tokens.', tokenSchema) },
    refusals: refusals('SESSION_ENDED', 'NOT_A_MEMBER'),
    handle: async ({ caller, body, request }) => {
      const input = { organizationId: body.organizationId, origin: originOf(request) };
      return unstored(presentTokens(await switchOrganization(deps, caller, input)));
    },
  });
}

import { z } from 'zod';
import { type App, callerOf } from '#kit/http/http.ts';
import { organizationStatus } from '../organizations/routes.ts';
import { type StatusDeps, setStatus } from '../organizations/status.ts';
import { originOf } from '../requests/origin.ts';

/** Platform governance (specification document 1, section 4). */
export function mountPlatform(app: App, deps: StatusDeps): void {
  app.put(
    '/api/platform/organizations/:orgId/status',
    {
      config: { policy: 'RequireSystemAdmin', rateLimit: 'Strict' },
      schema: {
        tags: ['platform'],
        params: z.object({ orgId: z.guid().toLowerCase() }),
        body: z.object({ status: organizationStatus }),
      },
    },
    async (request, reply) => {
      await setStatus(deps, {
        organizationId: request.params.orgId,
        status: request.body.status,
        by: callerOf(request),
        origin: originOf(request),
      });
      return reply.code(204).send();
    },
  );
}

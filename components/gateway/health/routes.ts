import { z } from 'zod';
import type { App } from '#kit/http/http.ts';
import { type Health, healthSchema } from './health.ts';

export interface HealthDeps {
  readonly health: () => Promise<Health>;
  readonly nowMs: () => number;
}

const selfSchema = z.object({ status: z.literal('healthy'), service: z.string(), timestamp: z.string() });

export function mountHealthRoutes(app: App, deps: HealthDeps): void {
  app.get(
    '/health',
    {
      config: { policy: 'Anonymous' },
      schema: {
        operationId: 'getGatewayHealth',
        tags: ['Health'],
        summary: 'Whether the gateway itself answers',
        response: { 200: selfSchema },
      },
    },
    async (_request, reply) => {
      reply.header('cache-control', 'no-store');
      return {
        status: 'healthy' as const,
        service: 'gateway',
        timestamp: new Date(deps.nowMs()).toISOString(),
      };
    },
  );
  app.get(
    '/api/health',
    {
      config: { policy: 'Anonymous' },
      schema: {
        operationId: 'getPlatformHealth',
        tags: ['Health'],
        summary: 'Health of every service',
        response: { 200: healthSchema, 503: healthSchema },
      },
    },
    async (_request, reply) => {
      const health = await deps.health();
      reply.header('cache-control', 'no-store');
      return reply.code(health.status === 'unhealthy' ? 503 : 200).send(health);
    },
  );
}

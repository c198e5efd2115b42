import { z } from 'zod';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
import { type Health, healthSchema } from './health.ts';

export interface HealthDeps {
  readonly health: () => Promise<Health>;
  readonly nowMs: () => number;
}

const selfSchema = z.object({ status: z.literal('healthy'), service: z.string(), timestamp: z.string() });

const probe = {
  method: 'GET',
  tag: 'Health',
  policy: 'Anonymous',
  rateLimit: 'none',
  refusals: [],
  noStore: true,
} as const;

export function mountHealthRoutes(app: App, deps: HealthDeps): void {
  addRoute(app, {
    ...probe,
    path: '/health',
    operationId: 'getGatewayHealth',
    summary: 'Whether the gateway itself answers',
    answers: { 200: json('It answers.', selfSchema) },
    handle: () => ({
      status: 'healthy',
      service: 'gateway',
      timestamp: new Date(deps.nowMs()).toISOString(),
    }),
  });
  addRoute(app, {
    ...probe,
    path: '/api/health',
    operationId: 'getPlatformHealth',
    summary: 'Health of every service',
    answers: {
      200: json('The platform can be used.', healthSchema),
      503: json('An essential service does not answer.', healthSchema),
    },
    handle: async () => {
      const health = await deps.health();
      return answer(health.status === 'unhealthy' ? 503 : 200, health);
    },
  });
}

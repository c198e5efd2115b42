import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, callerOf, problemSchema } from '#kit/http/http.ts';
import type { Recovery } from './jobs.ts';
import { syncStatuses } from './track.ts';

export interface RecoveryRouteDeps {
  readonly recovery: Pick<Recovery, 'health'>;
  /** Whether anonymous callers may read it; otherwise it needs a token. */
  readonly publicSyncHealth: boolean;
}

const text = z.string();
const count = z.int().min(0);
const status = z.enum(syncStatuses);
const healthSchema = z.object({
  status: status.describe('synced when all registers are, stalled when any is, recovering otherwise'),
  registerCount: count,
  registers: z
    .array(
      z.object({
        registerId: text,
        status,
        currentDocket: count,
        targetDocket: count,
        hasGenesis: z.boolean(),
        progressPercent: count.max(100),
        docketsProcessed: count,
        lastError: text.nullable(),
        isStale: z.boolean().describe('no progress for more than 10 seconds'),
      }),
    )
    .describe('registers that are not synced first, 1000 at most'),
  checkedAt: text.nullable(),
});

/** `GET /health/sync`: progress of registers that lost dockets (specification document 2, section 4). */
export function mountRecovery(app: App, deps: RecoveryRouteDeps): void {
  app.get(
    '/health/sync',
    {
      config: { policy: 'Anonymous', optionalToken: true, rateLimit: 'Api' },
      schema: {
        operationId: 'getSyncHealth',
        summary: 'Whether this service has every docket of its registers',
        tags: ['Health'],
        querystring: z.object({
          strict: z.enum(['0', '1']).default('0').describe('1: 503 when a register is stalled, for probes'),
        }),
        response: { 200: healthSchema, 401: problemSchema, 503: healthSchema },
      },
    },
    async (request, reply) => {
      if (!deps.publicSyncHealth) callerOf(request);
      const { checkedAtMs, ...health } = deps.recovery.health();
      const isDown = request.query.strict === '1' && health.status === 'stalled';
      return reply
        .code(isDown ? 503 : 200)
        .header('cache-control', 'no-store')
        .send({
          ...health,
          registers: [...health.registers],
          checkedAt: checkedAtMs === 0 ? null : apiTimestamp(checkedAtMs),
        });
    },
  );
}

import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
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
const healthSchema = z
  .object({
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
    checkedAt: text.nullable().describe('ISO 8601, UTC.'),
  })
  .meta({ id: 'SyncHealth' });

/** `GET /health/sync`: progress of registers that lost dockets (specification document 2, section 4). */
export function mountRecovery(app: App, deps: RecoveryRouteDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/health/sync',
    operationId: 'getSyncHealth',
    tag: 'Health',
    summary: 'Whether this service has every docket of its registers',
    policy: 'Anonymous',
    optionalToken: true,
    rateLimit: 'Api',
    query: z.object({
      strict: z.enum(['0', '1']).default('0').describe('1: 503 when a register is stalled, for probes'),
    }),
    answers: {
      200: json('Every register has its dockets, or is recovering them.', healthSchema),
      503: json('A register is stalled (with strict=1).', healthSchema),
    },
    refusals: [],
    noStore: true,
    handle: ({ caller, query }) => {
      if (!deps.publicSyncHealth && caller === undefined) throw unauthenticated();
      const { checkedAtMs, ...health } = deps.recovery.health();
      const isDown = query.strict === '1' && health.status === 'stalled';
      const checkedAt = checkedAtMs === 0 ? null : apiTimestamp(checkedAtMs);
      return answer(isDown ? 503 : 200, { ...health, checkedAt });
    },
  });
}

function unauthenticated(): AppError {
  return new AppError('unauthenticated', genericCode('unauthenticated'), 'Authentication is required.');
}

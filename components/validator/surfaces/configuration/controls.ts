import type { VerifyPool } from '#kit/crypto/verify-pool.ts';
import type { Logger } from '#kit/log/log.ts';
import { rateLimitRules } from '#kit/rate-limit/policies.ts';
import type { RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { Configuration, type Controls } from './configuration.ts';

interface ConfigurationParts {
  readonly engine: Pick<Controls, 'buildLimits' | 'bounds'>;
  readonly pool: Pick<VerifyPool, 'limit'>;
  /** Threads of the pool. */
  readonly workers: number;
  /** Undefined where no rate limit applies. */
  readonly limiter: Pick<RateLimiter, 'change'> | undefined;
  readonly log: Logger;
}

/** Builds the settings that an operator may change at runtime. */
export function configure({ engine, pool, workers, limiter, log }: ConfigurationParts): Configuration {
  const { Api } = rateLimitRules;
  const limit = (perMinute: number) => limiter?.change('Api', { ...Api, limit: perMinute });
  return new Configuration({
    buildLimits: engine.buildLimits,
    bounds: engine.bounds,
    verifying: { workers, limit: (threads) => pool.limit(threads) },
    rate: limiter && { perMinute: Api.limit, limit },
    log,
  });
}

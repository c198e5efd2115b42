import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Counter, slidingWindow, tokenBucket } from './counters.ts';
import { type RateLimitPolicy, type RateLimitRule, rateLimitRules } from './policies.ts';

interface RateLimiterOptions {
  /** `development` switches off every throughput limit; caps on guessing stay on. */
  readonly profile: 'production' | 'development';
  readonly clock: Clock;
  /** Other rules for some policies. */
  readonly rules?: Partial<Readonly<Record<RateLimitPolicy, RateLimitRule>>>;
}

/** An HTTP application, as the limiter uses it. */
interface HookedApp {
  addHook(name: 'onRequest', hook: (request: FastifyRequest, reply: FastifyReply) => Promise<void>): unknown;
}

/** Throughput limits of one process. */
export interface RateLimiter {
  /** Counts the requests of routes that declare `config.rateLimit`. Install it after the authenticator. */
  install(app: HookedApp): void;
  /**
   * Counts one act by an explicit key, for limits that depend on the body (client id of a token request).
   *
   * @throws AppError `rate_limited` with the seconds to wait.
   */
  take(policy: RateLimitPolicy, key: string): void;
  /** Replaces the rule of a policy; earlier counts are dropped. */
  change(policy: RateLimitPolicy, rule: RateLimitRule): void;
}

interface Limit {
  readonly rule: RateLimitRule;
  readonly counter: Counter;
}

/** Creates the limiter; counters are in memory, one set per process. */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const limits = new Map<RateLimitPolicy, Limit>();
  const begin = (policy: RateLimitPolicy, rule: RateLimitRule): Limit => {
    const made = { rule, counter: counterOf(rule) };
    limits.set(policy, made);
    return made;
  };
  const limitOf = (policy: RateLimitPolicy): Limit => {
    const known = limits.get(policy);
    if (known !== undefined) {
      return known;
    }
    const rule = options.rules?.[policy] ?? rateLimitRules[policy];
    return begin(policy, rule);
  };
  const off = options.profile === 'development';
  return {
    install: (app) => {
      if (off) {
        return;
      }
      app.addHook('onRequest', async (request, reply) => {
        const policy = request.routeOptions.config.rateLimit;
        if (policy !== undefined) {
          const limit = limitOf(policy);
          judge(policy, limit, { key: keyOf(limit.rule, request), nowMs: options.clock.nowMs(), reply });
        }
      });
    },
    take: (policy, key) => {
      if (!off) {
        judge(policy, limitOf(policy), { key: `given:${key}`, nowMs: options.clock.nowMs() });
      }
    },
    change: (policy, rule) => {
      begin(policy, rule);
    },
  };
}

function counterOf(rule: RateLimitRule): Counter {
  return rule.kind === 'window'
    ? slidingWindow(rule.limit, rule.windowSeconds)
    : tokenBucket(rule.limit, rule.refillPerSecond);
}

function judge(
  policy: RateLimitPolicy,
  limit: Limit,
  request: { readonly key: string; readonly nowMs: number; readonly reply?: FastifyReply },
): void {
  const verdict = limit.counter.take(request.key, request.nowMs);
  request.reply?.headers({
    'x-ratelimit-policy': policy,
    'x-ratelimit-limit': String(limit.rule.limit),
    'x-ratelimit-remaining': String(verdict.remaining),
    'x-ratelimit-reset': String(verdict.resetSeconds),
  });
  if (!verdict.allowed) {
    throw new AppError('rate_limited', genericCode('rate_limited'), 'Too many requests.', {
      retryAfterSeconds: verdict.retryAfterSeconds,
    });
  }
}

function keyOf(rule: RateLimitRule, request: FastifyRequest): string {
  const { caller } = request;
  if (rule.key === 'address' || caller === undefined) {
    return `address:${request.ip}`;
  }
  return rule.key === 'client' ? `client:${caller.clientId}` : `subject:${caller.subject}`;
}

/** Named throughput limits. A route declares one as `config.rateLimit`. */
export type RateLimitPolicy =
  | 'Api'
  | 'Strict'
  | 'PlatformAuth'
  | 'Authentication'
  | 'TotpValidate'
  | 'Token'
  | 'CredentialExchange'
  | 'Hub';

/** The key by which requests of a policy are counted. */
type RateLimitKey = 'subject' | 'client' | 'address';

/**
 * `window`: at most `limit` in any `windowSeconds` (sliding).
 * `bucket`: bursts of `limit`, refilled with `refillPerSecond`.
 */
export type RateLimitRule =
  | {
      readonly kind: 'window';
      readonly limit: number;
      readonly windowSeconds: number;
      readonly key: RateLimitKey;
    }
  | {
      readonly kind: 'bucket';
      readonly limit: number;
      readonly refillPerSecond: number;
      readonly key: RateLimitKey;
    };

/** Limits of the production profile. In development every one of them is off. */
export const rateLimitRules: Readonly<Record<RateLimitPolicy, RateLimitRule>> = {
  Api: { kind: 'window', limit: 600, windowSeconds: 60, key: 'subject' },
  Strict: { kind: 'bucket', limit: 60, refillPerSecond: 10, key: 'subject' },
  PlatformAuth: { kind: 'window', limit: 10, windowSeconds: 60, key: 'address' },
  Authentication: { kind: 'window', limit: 60, windowSeconds: 60, key: 'address' },
  TotpValidate: { kind: 'window', limit: 5, windowSeconds: 60, key: 'address' },
  CredentialExchange: { kind: 'window', limit: 60, windowSeconds: 60, key: 'address' },
  Hub: { kind: 'bucket', limit: 1_000, refillPerSecond: 500, key: 'subject' },
  Token: { kind: 'window', limit: 100, windowSeconds: 60, key: 'client' },
};

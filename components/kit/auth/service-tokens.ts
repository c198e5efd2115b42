import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { type Address, requestOverMtls } from './mtls.ts';

const TOKEN_PATH = '/api/internal/service-auth/token';
const renewAt = 0.8;
// A failed renewal is not retried before this time, whatever the number of calls.
const retryMs = 2_000;

const answerSchema = z.looseObject({ access_token: z.string().min(1), expires_in: z.number().positive() });
const refusalSchema = z.looseObject({ error: z.string(), error_description: z.string().optional() });

export interface ServiceTokensOptions {
  readonly workload: Workload;
  /** The tenant service's mTLS token listener. */
  readonly endpoint: Address;
  readonly clientId: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Space-separated; all scopes of the principal when absent. */
  readonly scope?: string;
}

interface CachedToken {
  readonly token: string;
  readonly renewAtMs: number;
  readonly expiresAtMs: number;
}

/**
 * Tokens of this service itself, minted with its SVID and no secret (specification document 1, section 5). A token is
 * cached until 80 % of its life, minus a random part so that replicas do not renew at the same time. When renewal
 * fails, the token is used until it expires.
 *
 * Errors of the function: unauthenticated/SERVICE_TOKEN_REFUSED, unavailable/SERVICE_UNAVAILABLE.
 */
export function createServiceTokens(options: ServiceTokensOptions): () => Promise<string> {
  const { clock, log } = options;
  let cached: CachedToken | undefined;
  let minting: Promise<CachedToken> | undefined;
  let retryAtMs = Number.NEGATIVE_INFINITY;

  const renewed = async (): Promise<CachedToken> => {
    minting ??= mint(options).finally(() => {
      minting = undefined;
    });
    cached = await minting;
    return cached;
  };

  return async () => {
    const nowMs = clock.nowMs();
    const usable = cached !== undefined && nowMs < cached.expiresAtMs ? cached : undefined;
    if (usable === undefined) return (await renewed()).token;
    if (nowMs < usable.renewAtMs || nowMs < retryAtMs) return usable.token;
    try {
      return (await renewed()).token;
    } catch (error) {
      retryAtMs = nowMs + retryMs;
      log.warn({ err: error }, 'service token not renewed; the cached one is still valid');
      return usable.token;
    }
  };
}

async function mint(options: ServiceTokensOptions): Promise<CachedToken> {
  const { workload, endpoint, clientId, clock, scope } = options;
  const askedAtMs = clock.nowMs();
  const answer = await requestOverMtls({
    workload,
    address: endpoint,
    expect: serviceSpiffeId(workload.trustDomain, 'service-tenant'),
    method: 'POST',
    path: TOKEN_PATH,
    form: { grant_type: 'client_credentials', client_id: clientId, ...(scope !== undefined && { scope }) },
  });
  const body = parseBody(answer.text);
  if (answer.status !== 200) throw refusalOf(answer.status, body);
  const parsed = answerSchema.safeParse(body);
  if (!parsed.success) throw broken();
  const lifeMs = parsed.data.expires_in * 1000;
  return {
    token: parsed.data.access_token,
    renewAtMs: askedAtMs + lifeMs * (renewAt - Math.random() * 0.05),
    expiresAtMs: askedAtMs + lifeMs,
  };
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refusalOf(status: number, body: unknown): AppError {
  const parsed = refusalSchema.safeParse(body);
  const reason = parsed.success ? (parsed.data.error_description ?? parsed.data.error) : `status ${status}`;
  if (status >= 500 || status === 429) {
    return new AppError('unavailable', 'SERVICE_UNAVAILABLE', `the token listener answered ${status}`);
  }
  return new AppError('unauthenticated', 'SERVICE_TOKEN_REFUSED', `no service token: ${reason}`);
}

function broken(): AppError {
  return new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'the token listener sent no token');
}

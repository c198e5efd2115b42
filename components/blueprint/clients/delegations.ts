import { z } from 'zod';
import { requestOverMtls } from '#kit/auth/mtls.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { keptConnections } from '#kit/workload/server.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { refusal } from '../errors.ts';

const path = '/api/internal/service-auth/token/delegated';
const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const scope = 'wallets:sign wallets:decrypt';

const answerSchema = z.looseObject({ access_token: z.string().min(1), expires_in: z.number().positive() });

/** A token with which this service acts for a person. */
export interface Delegation {
  readonly token: string;
  readonly expiresAtMs: number;
}

export interface Delegations {
  /**
   * Exchanges a person's token for a delegated one (RFC 8693).
   * @throws AppError forbidden DELEGATION_INVALID, unavailable
   */
  exchange(bearer: string): Promise<Delegation>;
}

interface DelegationOptions {
  readonly workload: Workload;
  readonly clientId: string;
  readonly clock: Clock;
}

/** The token listener of the tenant service, over connections that are kept: every step needs a token. */
export function connectDelegations(
  address: Endpoint,
  { workload, clientId, clock }: DelegationOptions,
): Delegations & { close(): void } {
  const expect = serviceSpiffeId(workload.trustDomain, 'service-tenant');
  const agent = keptConnections(expect);
  return {
    exchange: async (bearer) => {
      const askedAtMs = clock.nowMs();
      const form = { grant_type: tokenExchange, subject_token: bearer, client_id: clientId, scope };
      const answer = await requestOverMtls({ workload, address, expect, method: 'POST', path, form, agent });
      if (answer.status >= 500 || answer.status === 429)
        throw refusal('WALLETS_UNAVAILABLE', {
          message: 'authority to act for you cannot be obtained at present',
          retryAfterSeconds: 1,
        });
      if (answer.status !== 200)
        throw refusal('DELEGATION_INVALID', { message: 'no authority to act for the caller was granted' });
      return delegationOf(answer.text, askedAtMs);
    },
    close: () => agent.destroy(),
  };
}

function delegationOf(text: string, askedAtMs: number): Delegation {
  try {
    const { access_token: token, expires_in: seconds } = answerSchema.parse(JSON.parse(text));
    return { token, expiresAtMs: askedAtMs + seconds * 1_000 };
  } catch {
    // The cause is dropped, because its text could quote the token.
    throw refusal('WALLETS_UNAVAILABLE', {
      message: 'the tenant service answered no token',
      retryAfterSeconds: 1,
    });
  }
}

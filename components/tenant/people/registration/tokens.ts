import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Protection } from '../../tokens/keys/protection.ts';
import { createTokens, type OneTimeTokens } from '../../tokens/one-time/one-time.ts';

const dayMs = 86_400_000;

const addressPayload = z.object({ email: z.string() });
const nothing = z.object({});

/** Tokens of links in mails; the subject of each is an account. */
export interface AddressTokens {
  /** Confirms an address: that of the account, or one that it is to get. */
  readonly verification: OneTimeTokens<z.output<typeof addressPayload>>;
  /** Deletes an unverified account that another person made with the address. */
  readonly disowning: OneTimeTokens<z.output<typeof nothing>>;
}

export function createAddressTokens(deps: {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly protection: Protection;
}): AddressTokens {
  return {
    verification: createTokens(deps, {
      purpose: 'email-verification',
      payload: addressPayload,
      lifetimeMs: dayMs,
    }),
    disowning: createTokens(deps, {
      purpose: 'registration-disowned',
      payload: nothing,
      lifetimeMs: 30 * dayMs,
    }),
  };
}

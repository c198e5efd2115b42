import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Ledger } from '../sealing/ports.ts';

/** How long a subscription that was seen is believed; one that was not seen is asked for again. */
const believedMs = 30_000;
const mostBelieved = 10_000;

/** Refuses people whose organisation does not subscribe to the register they submit to (decision D31). */
export interface SubscriptionCheck {
  /** Throws AppError forbidden SUBSCRIPTION_REQUIRED; unavailable when the register service does not answer. */
  assertSubscribed(organizationId: string | undefined, registerId: string): Promise<void>;
}

export function createSubscriptionCheck(
  ledger: Pick<Ledger, 'isSubscribed'>,
  clock: Clock,
): SubscriptionCheck {
  const seenAtMs = new Map<string, number>();
  const asking = new Map<string, Promise<boolean>>();
  /** Everybody who wants to know at the same time waits for the same answer. */
  const ask = (key: string, organizationId: string, registerId: string): Promise<boolean> => {
    const known = asking.get(key);
    if (known !== undefined) return known;
    const answer = ledger.isSubscribed(organizationId, registerId).finally(() => asking.delete(key));
    asking.set(key, answer);
    return answer;
  };
  const isSubscribed = async (organizationId: string, registerId: string): Promise<boolean> => {
    const key = `${organizationId} ${registerId}`;
    const seen = seenAtMs.get(key);
    if (seen !== undefined && clock.nowMs() - seen < believedMs) return true;
    const subscribed = await ask(key, organizationId, registerId);
    if (seenAtMs.size >= mostBelieved) seenAtMs.clear();
    if (subscribed) seenAtMs.set(key, clock.nowMs());
    else seenAtMs.delete(key);
    return subscribed;
  };
  return {
    assertSubscribed: async (organizationId, registerId) => {
      if (organizationId !== undefined && (await isSubscribed(organizationId, registerId))) return;
      throw new AppError(
        'forbidden',
        'SUBSCRIPTION_REQUIRED',
        "The caller's organisation does not subscribe to this register",
      );
    },
  };
}

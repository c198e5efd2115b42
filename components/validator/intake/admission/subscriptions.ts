import type { Clock } from '#kit/clock/clock.ts';
import type { Ledger } from '../../chain/sealing/ports.ts';
import { failure } from '../../errors.ts';

/** How long a confirmed subscription is cached; a negative answer is not cached. */
const cacheTtlMs = 30_000;
const maxCached = 10_000;

/** Refuses users whose organisation does not subscribe to the register they submit to. */
export interface SubscriptionCheck {
  /** Whether a confirmed subscription is cached, so that no request is needed. */
  isCached(organizationId: string | undefined, registerId: string): boolean;
  /** Throws AppError forbidden SUBSCRIPTION_REQUIRED; unavailable when the register service does not answer. */
  assertSubscribed(organizationId: string | undefined, registerId: string): Promise<void>;
}

export function createSubscriptionCheck(
  ledger: Pick<Ledger, 'isSubscribed'>,
  clock: Clock,
): SubscriptionCheck {
  const seenAtMs = new Map<string, number>();
  const requests = new Map<string, Promise<boolean>>();
  /** Concurrent checks of the same subscription share one request. */
  const ask = (key: string, organizationId: string, registerId: string): Promise<boolean> => {
    const known = requests.get(key);
    if (known !== undefined) return known;
    const answer = ledger.isSubscribed(organizationId, registerId).finally(() => requests.delete(key));
    requests.set(key, answer);
    return answer;
  };
  const keyOf = (organizationId: string, registerId: string) => `${organizationId} ${registerId}`;
  const isCached = (organizationId: string | undefined, registerId: string): boolean => {
    if (organizationId === undefined) return false;
    const seen = seenAtMs.get(keyOf(organizationId, registerId));
    return seen !== undefined && clock.nowMs() - seen < cacheTtlMs;
  };
  const isSubscribed = async (organizationId: string, registerId: string): Promise<boolean> => {
    if (isCached(organizationId, registerId)) return true;
    const key = keyOf(organizationId, registerId);
    const subscribed = await ask(key, organizationId, registerId);
    if (seenAtMs.size >= maxCached) seenAtMs.clear();
    if (subscribed) seenAtMs.set(key, clock.nowMs());
    else seenAtMs.delete(key);
    return subscribed;
  };
  return {
    isCached,
    assertSubscribed: async (organizationId, registerId) => {
      if (organizationId !== undefined && (await isSubscribed(organizationId, registerId))) return;
      throw failure('SUBSCRIPTION_REQUIRED');
    },
  };
}

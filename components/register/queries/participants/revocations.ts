import { SUBJECTS } from '#core/events/subjects.ts';
import type { WalletKeyRevoked } from '#core/events/wallet-events.ts';
import { type ConsumerOptions, type Consumption, startConsumer } from '#kit/events/consumer.ts';
import type { Follower } from '#kit/events/follow.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { storeRevocations } from './store.ts';

type RevocationConsumption = Consumption<RegisterSchema, WalletKeyRevoked>;
type RevocationParts = Pick<RevocationConsumption, 'db' | 'log' | 'onApplied'>;

/**
 * Consumption of the wallet service's events of revoked keys. A revoked key signs no record that would say so; the keys
 * that it has published count as revoked on every register here.
 */
export function revocationConsumption(parts: RevocationParts): RevocationConsumption {
  return {
    ...parts,
    source: 'wallet',
    apply: async (tx, events) => {
      await storeRevocations(tx, events);
      return events.length;
    },
  };
}

/** Starts the consumption; nothing waits for the wallet service. */
export function startRevocations(
  parts: RevocationParts,
  options: Pick<ConsumerOptions, 'log' | 'onFailed' | 'pollMs'>,
): Follower {
  return startConsumer(revocationConsumption(parts), {
    ...options,
    // Most events of that log are of other kinds, so its wake signal would only cause empty reads.
    bus: { subscribe: () => () => undefined },
    subject: SUBJECTS.walletEvents,
    meanwhile: 'keys that are revoked meanwhile count as published',
  });
}

import { WALLET_KEY_REVOKED } from '#core/events/wallet-events.ts';
import type { Reader } from '#kit/db/db.ts';
import { outboxStart, readEvents } from '#kit/db/outbox.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { EventService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type { WalletDatabase } from '../database/schema.ts';

type Methods = typeof EventService extends { readonly method: infer M } ? M : never;

const defaultLimit = 500;
const maxLimit = 1_000;

/**
 * The kinds of events that a service reads; absent for every kind. The tenant service needs owners of wallets for the
 * `wallet_address` claim, and the audited uses of keys. The register service learns of revoked keys alone.
 */
const readers: Readonly<Record<string, { readonly kinds?: readonly string[] }>> = {
  'service-tenant': {},
  'service-register': { kinds: [WALLET_KEY_REVOKED] },
};
const noReader = { kinds: [] };

export function mayReadEvents(peer: RpcPeer): boolean {
  return Object.hasOwn(readers, peer.clientId);
}

/** The event log, for consumers that keep their own cursor. */
export function eventHandlers(read: Reader<WalletDatabase>): RpcHandlers<Methods> {
  return {
    readEvents: async ({ after, limit: requested }, { peer }) => {
      const limit = requested === 0 ? defaultLimit : Math.min(requested, maxLimit);
      const { kinds } = readers[peer.clientId] ?? noReader;
      const events = await readEvents(read, after ?? outboxStart, limit, kinds);
      return {
        events: events.map(({ cursor, kind, key, data }) => ({
          cursor: { transactionId: cursor.transactionId, sequence: cursor.sequence },
          kind,
          key,
          data: JSON.stringify(data),
        })),
        complete: events.length < limit,
      };
    },
  };
}

import type { Reader } from '#kit/db/db.ts';
import { outboxStart, readEvents } from '#kit/db/outbox.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { EventService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type { WalletDatabase } from '../database/schema.ts';

type Methods = typeof EventService extends { readonly method: infer M } ? M : never;

const DEFAULT_LIMIT = 500;
const MAX_LIMIT = 1_000;

/** Only the tenant service reads the owners of wallets; it needs them for the `wallet_address` claim. */
export function mayReadEvents(peer: RpcPeer): boolean {
  return peer.clientId === 'service-tenant';
}

/** The event log, for consumers that keep their own cursor. */
export function eventHandlers(read: Reader<WalletDatabase>): RpcHandlers<Methods> {
  return {
    readEvents: async ({ after, limit: wanted }) => {
      const limit = wanted === 0 ? DEFAULT_LIMIT : Math.min(wanted, MAX_LIMIT);
      const events = await readEvents(read, after ?? outboxStart, limit);
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

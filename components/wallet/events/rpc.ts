import type { Reader } from '#kit/db/db.ts';
import { outboxStart, readEvents } from '#kit/db/outbox.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { EventService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import type { WalletDatabase } from '../database/schema.ts';

type Methods = typeof EventService extends { readonly method: infer M } ? M : never;

const defaultLimit = 500;
const maxLimit = 1_000;

/** Only the tenant service reads the owners of wallets; it needs them for the `wallet_address` claim. */
export function mayReadEvents(peer: RpcPeer): boolean {
  return peer.clientId === 'service-tenant';
}

/** The event log, for consumers that keep their own cursor. */
export function eventHandlers(read: Reader<WalletDatabase>): RpcHandlers<Methods> {
  return {
    readEvents: async ({ after, limit: requested }) => {
      const limit = requested === 0 ? defaultLimit : Math.min(requested, maxLimit);
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

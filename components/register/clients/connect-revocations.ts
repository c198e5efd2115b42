import { parseWalletKeyRevoked, type WalletKeyRevoked } from '#core/events/wallet-events.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { formatCursor, parseCursor } from '#kit/db/outbox.ts';
import type { EventSource } from '#kit/events/consumer.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { EventService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { refusal } from '../errors.ts';
import type { PeerOptions } from './connect-wallets.ts';

const readTimeoutMs = 5_000;

/** The revoked keys in the event log of the wallet service, over gRPC; it connects on the first read. */
export function connectRevocations(
  endpoint: Endpoint,
  options: PeerOptions,
): EventSource<WalletKeyRevoked> & { close(): void } {
  const expect = serviceSpiffeId(options.runtime.installation, 'service-wallet');
  const client = createRpcClient(EventService, { address: endpoint, expect, ...options });
  return {
    read: async (position, signal) => {
      const after = parseCursor(position);
      if (after === undefined) throw refusal('CURSOR_UNREADABLE');
      const { events, complete } = await client.readEvents({ after }, { signal, timeoutMs: readTimeoutMs });
      const last = events.at(-1);
      if (last === undefined) return { events: [], position, complete };
      if (last.cursor === undefined) throw refusal('EVENT_UNREADABLE');
      return {
        events: events.flatMap(({ kind, data }) => parseWalletKeyRevoked(kind, JSON.parse(data)) ?? []),
        position: formatCursor(last.cursor),
        complete,
      };
    },
    close: () => client.close(),
  };
}

import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { type Event, EventService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { refusal } from './errors.ts';
import type { EventSource } from './people/wallets/consumer.ts';

const readTimeoutMs = 5_000;

interface ClientOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly token: () => Promise<string>;
}

/** Client of the event log in the wallet service, over gRPC; it connects on the first read. */
export function connectWalletEvents(
  address: { readonly host: string; readonly port: number },
  options: ClientOptions,
): EventSource & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-wallet');
  const client = createRpcClient(EventService, { ...options, address, expect });
  return {
    read: async (after, signal) => {
      const answer = await client.readEvents({ after }, { signal, timeoutMs: readTimeoutMs });
      return { events: answer.events.map(eventOf), complete: answer.complete };
    },
    close: () => client.close(),
  };
}

function eventOf({ cursor, kind, data }: Event) {
  if (cursor === undefined) {
    throw refusal('EVENT_UNREADABLE');
  }
  const { transactionId, sequence } = cursor;
  return { cursor: { transactionId, sequence }, kind, data: JSON.parse(data) as unknown };
}

import { type Client, connectivityState } from '@grpc/grpc-js';
import type { ChannelHold } from './channel.ts';
import { NotServed, OutgoingCalls } from './outgoing-calls.ts';
import { callPlainly, type UnaryCall } from './unary-call.ts';

/** How the calls of one connection are carried. */
interface Carrier {
  calls: OutgoingCalls | undefined;
  /** Whether the server does not know the service; it may after the next connection. */
  isPlain: boolean;
}

/**
 * Carries the unary calls of each connection on one stream (`multiplex.proto`), opened by the first call. A call that
 * does not fit there, and every call to a server that does not know the service, is a gRPC call of its own.
 */
export class MultiplexedCalls {
  readonly #carriers = new WeakMap<Client, Carrier>();

  /** Errors: those of the call; those of the connection for all calls in flight when the stream breaks. */
  async call(hold: ChannelHold, call: UnaryCall): Promise<Uint8Array> {
    const calls = this.#callsOf(hold);
    if (calls === undefined || !calls.takes(call)) return await callPlainly(hold.client, call);
    try {
      return await calls.call(call);
    } catch (error) {
      if (!(error instanceof NotServed)) throw error;
      return await callPlainly(hold.client, call);
    }
  }

  #callsOf(hold: ChannelHold): OutgoingCalls | undefined {
    const carrier = this.#carriers.get(hold.client) ?? this.#add(hold);
    if (carrier.isPlain) return undefined;
    if (carrier.calls?.isOpen !== true) {
      carrier.calls = new OutgoingCalls(hold.client, () => usePlainCalls(carrier, hold.client));
    }
    return carrier.calls;
  }

  #add(hold: ChannelHold): Carrier {
    const carrier: Carrier = { calls: undefined, isPlain: false };
    this.#carriers.set(hold.client, carrier);
    hold.onClosed(() => carrier.calls?.close());
    return carrier;
  }
}

/** Until the connection is lost: the server may have been replaced by one that knows the service. */
function usePlainCalls(carrier: Carrier, client: Client): void {
  const channel = client.getChannel();
  if (channel.getConnectivityState(false) !== connectivityState.READY) return;
  carrier.isPlain = true;
  channel.watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, () => {
    carrier.isPlain = false;
  });
}

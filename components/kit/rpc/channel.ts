import { Client } from '@grpc/grpc-js';
import type { Workload } from '#kit/workload/workload.ts';
import { channelCredentials } from './credentials.ts';
import { CLIENT_OPTIONS } from './wire.ts';

export interface Lease {
  readonly client: Client;
  /** To be called once when the call has ended. */
  release(): void;
}

interface Channel {
  readonly client: Client;
  active: number;
  retired: boolean;
}

/**
 * The connection of an RPC client, replaced whole at each rotation of the SVID (decision D43). grpc-js's
 * certificate-provider credentials serve new handshakes only: an established HTTP/2 connection would keep the old
 * certificate past its end. Here new calls open a connection with the new SVID at once, and the old one closes when
 * its last call has ended, at the latest when the server ends the streams of the expired certificate.
 */
export class RotatingChannel {
  readonly #address: string;
  readonly #workload: Workload;
  readonly #accepts: (spiffeId: string) => boolean;
  readonly #forget: () => void;
  #channel: Channel | undefined;

  constructor(address: string, workload: Workload, accepts: (spiffeId: string) => boolean) {
    this.#address = address;
    this.#workload = workload;
    this.#accepts = accepts;
    this.#forget = workload.onRotate(() => this.#retire());
  }

  lease(): Lease {
    const channel = this.#channel ?? this.#open();
    this.#channel = channel;
    channel.active += 1;
    let released = false;
    return {
      client: channel.client,
      release: () => {
        if (released) return;
        released = true;
        channel.active -= 1;
        closeWhenIdle(channel);
      },
    };
  }

  close(): void {
    this.#forget();
    this.#retire();
  }

  #open(): Channel {
    const credentials = channelCredentials(this.#workload, this.#accepts);
    return { client: new Client(this.#address, credentials, CLIENT_OPTIONS), active: 0, retired: false };
  }

  #retire(): void {
    const channel = this.#channel;
    this.#channel = undefined;
    if (channel === undefined) return;
    channel.retired = true;
    closeWhenIdle(channel);
  }
}

function closeWhenIdle(channel: Channel): void {
  if (channel.retired && channel.active === 0) channel.client.close();
}

import { isIPv6 } from 'node:net';
import type { ProblemCode } from '../answers/problem.ts';

/** Why a call to a hub is refused: too many of one client, or of all clients of this gateway. */
type HeldRefusal = 'client' | 'gateway';

/** The answers to refused calls. */
export const heldProblems = {
  client: { code: 'RATE_LIMITED', detail: 'Too many open hub connections from this address.' },
  gateway: { code: 'SERVICE_UNAVAILABLE', detail: 'The gateway accepts no more hub connections.' },
} as const satisfies Record<HeldRefusal, { readonly code: ProblemCode; readonly detail: string }>;

/** A call to a hub that stays open: a WebSocket, an event stream or a poll. */
export interface HeldCall {
  /** The call has ended; repetitions have no effect. */
  release(): void;
}

/** The open calls to hubs, with bounds of their own, because a call may last for hours. */
export interface HeldCalls {
  /**
   * Counts a call until its `release`.
   *
   * @param end ends the call when the gateway stops, so that the client reconnects to another one.
   */
  take(clientAddress: string, end: () => void): HeldCall | HeldRefusal;
  /** Number of open calls. */
  count(): number;
  /** Ends every call, and refuses new ones. */
  endAll(): void;
}

interface HeldLimits {
  /** Open calls of this gateway. */
  readonly most: number;
  /** Open calls of one client address; of IPv6 one network of 64 bits. */
  readonly mostOfClient: number;
}

export function createHeldCalls({ most, mostOfClient }: HeldLimits): HeldCalls {
  const open = new Set<() => void>();
  const byClient = new Map<string, number>();
  let stopped = false;
  return {
    take: (clientAddress, end) => {
      const client = networkOf(clientAddress);
      const ofClient = byClient.get(client) ?? 0;
      if (stopped || open.size >= most) return 'gateway';
      if (ofClient >= mostOfClient) return 'client';
      // a separate function for each call, because callers may share one
      const entry = () => end();
      open.add(entry);
      byClient.set(client, ofClient + 1);
      return {
        release: () => {
          if (!open.delete(entry)) return;
          const left = (byClient.get(client) ?? 1) - 1;
          if (left === 0) byClient.delete(client);
          else byClient.set(client, left);
        },
      };
    },
    count: () => open.size,
    endAll: () => {
      stopped = true;
      for (const end of [...open]) end();
    },
  };
}

/** A host has every address of its IPv6 network, so the network is counted. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const { hostname } = new URL(`http://[${address.split('%')[0]}]`);
  const [head = '', tail] = hostname.slice(1, -1).split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}

import type { Caller } from '#core/identity/claims.ts';

/** The connection of a client, as the methods of a hub see it. */
export interface HubClient {
  readonly id: string;
  /** Platform user id of its callers. */
  readonly userId: string;
  /** The caller of its latest token. */
  readonly caller: Caller;
  /** Aborted when the connection has ended. */
  readonly ended: AbortSignal;
  /** Sends an event to this connection alone; arguments are JSON data. One that does not read is closed. */
  sendEvent(target: string, args: readonly unknown[]): void;
}

/** Takes the results of an invocation one by one. */
export interface InvokedStream {
  /** Aborted when the client wants no further results, or its connection has ended. */
  readonly cancelled: AbortSignal;
  /** Sends a result, JSON data. */
  send(item: unknown): void;
}

/** One call of a method. */
export interface Invocation {
  readonly target: string;
  readonly args: readonly unknown[];
  /** Absent when the client takes one result. */
  readonly stream: InvokedStream | undefined;
}

import type { Caller } from '#core/identity/claims.ts';
import type { Invocation } from './calls.ts';
import type { HubConnection } from './connection.ts';

/** What the connections of a hub do, apart from the protocol. */
export interface Behaviour {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Runs at negotiation and before a connection opens; throws an AppError where the caller may have none. */
  assertMayConnect(caller: Caller): void;
  /** Runs after the handshake, before the first invocation. */
  opened(connection: HubConnection): Promise<void>;
  /** Runs a method. Errors: invalid/HUB_METHOD_UNKNOWN, invalid/HUB_METHOD_NOT_STREAMED, those of the method. */
  invoke(connection: HubConnection, invocation: Invocation): Promise<unknown>;
  /** Runs once, when nothing reaches the client any more. */
  ended(connection: HubConnection): void;
}

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Messages for every client, and messages for one client each, by its name. */
export interface Messages {
  readonly all?: readonly string[];
  readonly each?: readonly (readonly [name: string, text: string])[];
}

/** How a program sends one message, in a form that it prepared before the clock ran. */
export interface Sending<Prepared> {
  prepare(text: string): Prepared;
  toAll(message: Prepared): void;
  toOne(name: string, message: Prepared): void;
}

/** After so many characters sockets get a turn to drain. */
const turnCharacters = 64 * 1024;

/** Loads what is sent later. */
function load<Prepared>(
  { all = [], each = [] }: Messages,
  { prepare, toAll, toOne }: Sending<Prepared>,
): () => Promise<void> {
  const messages = all.map(prepare);
  const named = each.map(([name, text]) => ({ name, length: text.length, message: prepare(text) }));
  return async () => {
    for (const message of messages) {
      toAll(message);
      await nextTurn();
    }
    let sent = 0;
    for (const { name, length, message } of named) {
      toOne(name, message);
      sent += length;
      if (sent < turnCharacters) continue;
      sent = 0;
      await nextTurn();
    }
  };
}

/**
 * Listens, reports the port to the benchmark, and follows its messages: `Messages` in JSON are loaded; `send` sends what
 * is loaded, and is answered when all is sent.
 */
export function serveSending<Prepared>(
  server: Pick<Server, 'listen' | 'address'>,
  sending: Sending<Prepared>,
): void {
  let send: () => Promise<void> = async () => undefined;
  process.on('message', (text) => {
    if (text === 'send') {
      void send().then(() => process.send?.('sent'));
      return;
    }
    send = load(JSON.parse(String(text)), sending);
    process.send?.('loaded');
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 }, () => {
    process.send?.(String((server.address() as AddressInfo).port));
  });
  // The benchmark may end first.
  process.once('disconnect', () => process.exit(0));
}

import { HttpTransportType } from '@microsoft/signalr';
import { expect } from 'vitest';
import { CHAT_HUB_EVENTS, type ChatHubEvent } from '#core/events/hub-events.ts';
import { connectClient } from '#kit/hub/hub.fixture.ts';
import { sitePermit, type World } from '../../testing/world.ts';

const names = Object.keys(CHAT_HUB_EVENTS) as ChatHubEvent[];

interface Heard {
  readonly name: ChatHubEvent;
  readonly args: readonly unknown[];
}

/** What came of a stream, and how it ended. */
interface Streamed {
  readonly items: unknown[];
  end: string | undefined;
  /** Cancels it. */
  dispose(): void;
}

/** A client of the chat hub with what it heard; arguments that their schema refuses fail its test. */
export async function openChat(url: string, token = 'admin', transport = HttpTransportType.WebSockets) {
  const { connection, closed } = await connectClient(url, { token, transport });
  const heard: Heard[] = [];
  for (const name of names) {
    connection.on(name, (...args: unknown[]) => {
      expect(CHAT_HUB_EVENTS[name].parse(args)).toEqual(args);
      heard.push({ name, args });
    });
  }
  const of = (name: ChatHubEvent) => heard.filter((one) => one.name === name).map(({ args }) => args);
  return {
    connection,
    closed,
    heard,
    of,
    names: () => heard.map(({ name }) => name),
    text: () => of('ReceiveChunk').join(''),
    invoke: (method: string, ...args: unknown[]) => connection.invoke(method, ...args),
    start: async (...args: unknown[]): Promise<string> => await connection.invoke('StartSession', ...args),
    stream: (method: string, ...args: unknown[]): Streamed => {
      const streamed: Streamed = { items: [], end: undefined, dispose: () => subscription.dispose() };
      const subscription = connection.stream(method, ...args).subscribe({
        next: (item) => streamed.items.push(item),
        error: (error: Error) => {
          streamed.end = error.message;
        },
        complete: () => {
          streamed.end = 'complete';
        },
      });
      return streamed;
    },
    stop: () => connection.stop(),
  };
}

/** A new draft of the first organisation, as it is stored. */
export async function createPermit(world: World, id: string) {
  const { version: _version, ...permit } = sitePermit();
  const body = { title: '', ...permit, id };
  expect((await world.call('POST', '/api/blueprints', { body })).status).toBe(201);
  return body;
}

/** The smallest draft. */
export const smallDraft = { id: 'small-one', title: 'Small', description: '', participants: [], actions: [] };

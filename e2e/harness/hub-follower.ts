import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { connectHub, type HubClient, type Transport } from './hub.ts';

/** What a follower connects to. */
export interface FollowedHub {
  /** URL of the hub. */
  readonly url: string;
  readonly token: string;
  readonly transport: Transport;
  /** The register to subscribe to; without one the URL gets `since`, as the inbox of a person needs. */
  readonly registerId?: string;
}

/** A client that connects anew after each end of its connection, and asks for what it missed. */
export interface Follower {
  /** First arguments of the events that name their subject, without repetitions, in the order of their arrival. */
  subjects(target: string): readonly string[];
  /** Connections that were made and subscribed. */
  connections(): number;
  /** Replays that did not have everything. */
  incomplete(): number;
  /** Errors of attempts to connect or to subscribe. */
  readonly errors: readonly string[];
  stop(): Promise<void>;
}

const subjectTargets = ['DocketSealed', 'TransactionConfirmed', 'InboxEntryAdded'];
const targets = [...subjectTargets, 'Replayed'];
const retryMs = 500;
const replaySchema = z.object({ complete: z.boolean() });

/** Starts to follow from now on; resolves when the first connection is made. */
export async function followHub(hub: FollowedHub): Promise<Follower> {
  const { url, token, transport, registerId } = hub;
  const subjects = new Map<string, Set<string>>(subjectTargets.map((target) => [target, new Set()]));
  const errors: string[] = [];
  let since = new Date().toISOString();
  let connections = 0;
  let incomplete = 0;
  let isStopped = false;
  let client: HubClient | undefined;
  const onSignal = (target: string, args: readonly unknown[]) => {
    if (target === 'Replayed') {
      incomplete += args[1] === true ? 0 : 1;
      return;
    }
    // events of registers begin with the register
    const [subject, occurredAt] = registerId === undefined ? args : args.slice(1);
    since = String(occurredAt);
    subjects.get(target)?.add(String(subject));
  };
  const connect = async (): Promise<HubClient> => {
    const query = registerId === undefined ? `?since=${encodeURIComponent(since)}` : '';
    const made = await connectHub(`${url}${query}`, { token, transport, targets, onSignal });
    try {
      if (registerId !== undefined) {
        const { complete } = replaySchema.parse(await made.invoke('SubscribeToRegister', registerId, since));
        incomplete += complete ? 0 : 1;
      }
    } catch (error) {
      await made.stop();
      throw error;
    }
    connections += 1;
    return made;
  };
  const run = async (): Promise<void> => {
    while (!isStopped) {
      await client?.closed;
      if (isStopped) return;
      await pause(retryMs * (0.5 + Math.random()));
      client = await connect().catch((error: unknown) => {
        errors.push(String(error));
        return undefined;
      });
    }
  };
  client = await connect();
  const running = run();
  return {
    subjects: (target) => [...(subjects.get(target) ?? [])],
    connections: () => connections,
    incomplete: () => incomplete,
    errors,
    stop: async () => {
      isStopped = true;
      await client?.stop();
      await running;
      await client?.stop();
    },
  };
}

import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { ApiServer } from '../../cluster/kubectl.ts';

/** The followed state of an object. */
export interface FollowedObject {
  readonly generation: number;
  readonly observedGeneration: number;
  readonly isReady: boolean;
  /** The reason why it is not Ready. */
  readonly message: string;
}

/** All objects of one kind, followed by a watch. */
export interface ObjectFollower {
  readonly path: string;
  readonly objects: ReadonlyMap<string, FollowedObject>;
  /**
   * Resolves with the event that fulfils the condition; rejects with the missing objects at the deadline or when the
   * watch ends.
   */
  until(what: string, deadlineMs: number, holds: () => boolean): Promise<void>;
  stop(): Promise<void>;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly message: string;
}

/** A line of a watch. */
interface WatchEvent {
  readonly type: string;
  readonly object: Watched;
}

interface Watched {
  readonly metadata: { readonly name: string; readonly generation: number };
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] };
}

/** Whether the operator has reconciled the newest spec and the object is Ready. */
export function isSettled({ generation, observedGeneration, isReady }: FollowedObject): boolean {
  return isReady && observedGeneration === generation;
}

export function readFollowed({ metadata, status }: Watched): FollowedObject {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    generation: metadata.generation,
    observedGeneration: status?.observedGeneration ?? 0,
    isReady: ready?.status === 'True',
    message: ready?.message ?? 'nothing is said of it',
  };
}

/** Names and reasons of some objects that are not settled. */
function missing(objects: ReadonlyMap<string, FollowedObject>): string {
  const open = [...objects].filter(([, seen]) => !isSettled(seen));
  const some = open.slice(0, 3).map(([name, { message }]) => `${name}: ${message}`);
  return `${objects.size - open.length} of ${objects.size} are Ready. ${some.join('; ')}`;
}

/** Follows a kind in a namespace from its present state. */
export async function follow({ url }: ApiServer, path: string): Promise<ObjectFollower> {
  const objects = new Map<string, FollowedObject>();
  const checks = new Set<() => void>();
  const stopping = new AbortController();
  let fault: unknown;
  const query = '?watch=true&timeoutSeconds=3600';
  const { status, body } = await fetch(`${url}${path}${query}`, { signal: stopping.signal });
  if (status !== 200 || body === null) throw new Error(`watch of ${path}: ${status}`);
  const read = async () => {
    const lines = createInterface({ input: Readable.fromWeb(body as ReadableStream) });
    for await (const line of lines) {
      const { type, object } = JSON.parse(line) as WatchEvent;
      if (type === 'ERROR') throw new Error(`watch of ${path}: ${line}`);
      if (type === 'DELETED') objects.delete(object.metadata.name);
      else objects.set(object.metadata.name, readFollowed(object));
      for (const check of checks) check();
    }
    throw new Error(`the watch of ${path} ended`);
  };
  const reading = read().catch((error: unknown) => {
    fault = error;
    for (const check of checks) check();
  });
  return {
    path,
    objects,
    until: (what, deadlineMs, holds) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (fault === undefined && !holds()) return;
          clearTimeout(timer);
          checks.delete(check);
          if (fault === undefined) resolve();
          else reject(fault);
        };
        const timer = setTimeout(() => {
          checks.delete(check);
          reject(new Error(`${what}: not within ${deadlineMs / 1000} s. ${missing(objects)}`));
        }, deadlineMs);
        checks.add(check);
        check();
      }),
    stop: async () => {
      stopping.abort();
      await reading;
    },
  };
}

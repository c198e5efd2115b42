import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HubConnection } from './connection.ts';
import { batchesOf, createEncoder, type Frame } from './frames.ts';
import type { Signal } from './signal.ts';

/** The groups that have connections on this replica. */
export class Groups {
  readonly #members = new Map<string, Set<HubConnection>>();
  readonly #batchBytes: number;

  constructor(batchBytes: number) {
    this.#batchBytes = batchBytes;
  }

  get size(): number {
    return this.#members.size;
  }

  has(group: string): boolean {
    return this.#members.has(group);
  }

  join(group: string, connection: HubConnection): void {
    const members = this.#members.get(group) ?? new Set();
    members.add(connection);
    this.#members.set(group, members);
  }

  leave(group: string, connection: HubConnection): void {
    const members = this.#members.get(group);
    members?.delete(connection);
    if (members?.size === 0) this.#members.delete(group);
  }

  /**
   * Sends signals to the connections of their groups, in order. Between batches other work has its turn, so that
   * sockets take bytes meanwhile and a client that reads is not mistaken for a slow one.
   */
  async deliver(signals: readonly Signal[]): Promise<void> {
    const frameOf = createEncoder();
    const run = new Map<string, Frame[]>();
    for (const signal of signals) {
      const [group, ...others] = signal.groups.filter((name) => this.has(name));
      if (group === undefined) continue;
      if (others.length === 0) {
        const frames = run.get(group) ?? [];
        frames.push(frameOf(signal));
        run.set(group, frames);
      } else {
        await this.#send(run);
        this.#sendOnce([group, ...others], frameOf(signal));
      }
      if (signal.endsGroup !== undefined) {
        await this.#send(run);
        this.#end(signal.endsGroup);
      }
    }
    await this.#send(run);
  }

  async #send(run: Map<string, Frame[]>): Promise<void> {
    let bytes = 0;
    for (const [group, frames] of run) {
      for (const batch of batchesOf(frames, this.#batchBytes)) {
        if (bytes + batch.bytes.length > this.#batchBytes) {
          await nextTurn();
          bytes = 0;
        }
        bytes += batch.bytes.length;
        for (const connection of this.#members.get(group) ?? []) connection.deliver(batch);
      }
    }
    run.clear();
  }

  #sendOnce(groups: readonly string[], frame: Frame): void {
    const connections = new Set(groups.flatMap((group) => [...(this.#members.get(group) ?? [])]));
    const batch = { bytes: frame.bytes, frames: [frame] };
    for (const connection of connections) connection.deliver(batch);
  }

  #end(group: string): void {
    for (const connection of this.#members.get(group) ?? []) connection.groups.delete(group);
    this.#members.delete(group);
  }
}

import { AppError } from '#core/errors/errors.ts';
import type { Envelope, Inbox, Transport } from '../network/transport/transport.ts';

/** The fate of an envelope on the network. */
export interface Fate {
  /** Delay of each delivery in milliseconds; none loses the envelope. */
  readonly delaysMs: readonly number[];
}

/** An in-memory network between named validators; tests inject its faults. */
export class MemoryNetwork {
  readonly #inboxes = new Map<string, Inbox>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Called for every envelope; may change or drop it. */
  tamper: (from: string, to: string, envelope: Envelope) => Envelope | undefined = (_from, _to, envelope) =>
    envelope;
  fate: (from: string, to: string) => Fate = () => ({ delaysMs: [0] });
  /** Whether two validators can reach each other. */
  reaches: (from: string, to: string) => boolean = () => true;
  sent = 0;

  transport(self: string): Transport {
    const inboxOf = (to: string): Inbox => {
      const inbox = this.#inboxes.get(to);
      if (inbox === undefined || !this.#inboxes.has(self) || !this.reaches(self, to)) {
        throw new AppError('unavailable', 'RPC_UNAVAILABLE', `${to} cannot be reached`);
      }
      return inbox;
    };
    return {
      send: (to, envelope) => this.#send(self, to, envelope),
      fetchRecords: async (to, registerId, ids) => inboxOf(to).records(self, registerId, ids),
      fetchCommit: async (to, registerId, height) => inboxOf(to).commit(self, registerId, height),
    };
  }

  join(self: string, inbox: Inbox): void {
    this.#inboxes.set(self, inbox);
    this.reconnect(self);
  }

  leave(self: string): void {
    this.#inboxes.delete(self);
  }

  /** Notifies both ends of every connection of a validator. */
  reconnect(self: string): void {
    for (const [other, inbox] of this.#inboxes) {
      if (other === self || !this.reaches(self, other)) continue;
      inbox.connected(self);
      this.#inboxes.get(self)?.connected(other);
    }
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#inboxes.clear();
  }

  #send(from: string, to: string, envelope: Envelope): void {
    this.sent += 1;
    if (!this.#inboxes.has(from) || !this.reaches(from, to)) return;
    const given = this.tamper(from, to, structuredClone(envelope));
    if (given === undefined) return;
    for (const delayMs of this.fate(from, to).delaysMs) {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        if (this.reaches(from, to)) this.#inboxes.get(to)?.receive(from, given);
      }, delayMs);
      this.#timers.add(timer);
    }
  }
}

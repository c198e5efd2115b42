import { AppError } from '#core/errors/errors.ts';
import type { Random } from '#kit/testing/random.ts';
import type { Envelope, Inbox, Transport } from '../../network/transport/transport.ts';
import type { EventQueue, ProcessHandle } from './event-queue.ts';

/** The network conditions between validators; they change during the run. */
export interface Conditions {
  loss: number;
  duplication: number;
  /** Bounds of the delay of a message in milliseconds. Different delays reorder. */
  delayMs: { readonly from: number; readonly to: number };
  /** Side of the partition by validator; different sides cannot communicate. */
  readonly sides: Map<string, number>;
  /** An adversary that sees every message and drops or delays it. */
  interfere: ((from: string, to: string, envelope: Envelope) => 'drop' | number) | undefined;
}

export function calm(): Conditions {
  return {
    loss: 0,
    duplication: 0,
    delayMs: { from: 0.2, to: 4 },
    sides: new Map(),
    interfere: undefined,
  };
}

interface Station {
  readonly validatorId: string;
  readonly handle: ProcessHandle;
  readonly inbox: Inbox;
}

/** Timeout of a request to another validator. */
const askMs = 4000;
const reconnectMs = { from: 250, to: 1500 } as const;

/** The links between the validators of a simulated world. */
export class Network {
  readonly conditions = calm();
  readonly #eventQueue: EventQueue;
  readonly #random: Random;
  #stations: Station[] = [];

  constructor(eventQueue: EventQueue, random: Random) {
    this.#eventQueue = eventQueue;
    this.#random = random;
  }

  /** Whether a partition is in effect. */
  get isPartitioned(): boolean {
    return new Set(this.conditions.sides.values()).size > 1;
  }

  /** Adds a started validator; its connections are established a little later. */
  join(validatorId: string, handle: ProcessHandle, inbox: Inbox): void {
    this.#stations = this.#stations.filter((station) => station.handle.alive);
    const station = { validatorId, handle, inbox };
    for (const other of this.#stations) this.#connect(station, other);
    this.#stations.push(station);
  }

  /** Breaks and re-establishes all connections. */
  reconnect(): void {
    const alive = this.#stations.filter((station) => station.handle.alive);
    for (const [place, station] of alive.entries()) {
      for (const other of alive.slice(place + 1)) this.#connect(station, other);
    }
  }

  transport(validatorId: string, handle: ProcessHandle): Transport {
    return {
      send: (to, envelope) => this.#send(validatorId, to, envelope),
      fetchRecords: (to, registerId, transactionIds, signal) =>
        this.#ask(validatorId, to, handle, {
          answer: (inbox) => inbox.records(validatorId, registerId, transactionIds),
          signal,
        }),
      fetchCommit: (to, registerId, height, signal) =>
        this.#ask(validatorId, to, handle, {
          answer: (inbox) => inbox.commit(validatorId, registerId, height),
          signal,
        }),
    };
  }

  #connect(a: Station, b: Station): void {
    if (a.validatorId === b.validatorId) return;
    for (const [station, other] of [
      [a, b],
      [b, a],
    ] as const) {
      const delayMs = this.#random.between(reconnectMs.from, reconnectMs.to);
      this.#eventQueue.after(
        delayMs,
        () => {
          const stands = other.handle.alive && !this.#isCut(station.validatorId, other.validatorId);
          if (stands) station.inbox.connected(other.validatorId);
        },
        station.handle,
      );
    }
  }

  #isCut(from: string, to: string): boolean {
    const { sides } = this.conditions;
    return sides.get(from) !== sides.get(to);
  }

  #delayMs(): number {
    const { from, to } = this.conditions.delayMs;
    return this.#random.between(from, to);
  }

  #send(from: string, to: string, envelope: Envelope): void {
    const { conditions } = this;
    const times = this.#random.chance(conditions.duplication) ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      const delayMs = this.#delayMs();
      const isLost = this.#random.chance(conditions.loss) || this.#isCut(from, to);
      const interference = conditions.interfere?.(from, to, envelope) ?? 0;
      if (isLost || interference === 'drop') continue;
      this.deliver(from, to, envelope, delayMs + interference);
    }
  }

  /** Delivers a message regardless of the conditions. */
  deliver(from: string, to: string, envelope: Envelope, delayMs: number): void {
    for (const { validatorId, handle, inbox } of this.#stations) {
      if (validatorId === to) this.#eventQueue.after(delayMs, () => inbox.receive(from, envelope), handle);
    }
  }

  #ask<T>(
    from: string,
    to: string,
    handle: ProcessHandle,
    query: { answer(inbox: Inbox): T; signal: AbortSignal | undefined },
  ): Promise<T> {
    const there = this.#delayMs();
    const back = this.#delayMs();
    const isLost = this.#random.chance(this.conditions.loss);
    return new Promise((resolve, reject) => {
      const fail = () => reject(new AppError('unavailable', 'RPC_UNAVAILABLE', `${to} cannot be asked`));
      query.signal?.addEventListener('abort', fail);
      const target = this.#stations.findLast((station) => station.validatorId === to && station.handle.alive);
      if (target === undefined || isLost || this.#isCut(from, to)) {
        this.#eventQueue.after(isLost ? askMs : there, fail, handle);
        return;
      }
      this.#eventQueue.after(askMs, fail, handle);
      const receive = () => {
        const answer = query.answer(target.inbox);
        this.#eventQueue.after(this.#isCut(from, to) ? askMs : back, () => resolve(answer), handle);
      };
      this.#eventQueue.after(there, receive, target.handle);
    });
  }
}

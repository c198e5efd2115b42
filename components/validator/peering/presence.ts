import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '../sealing/scheduler.ts';
import { PeerClocks } from './peer-clocks.ts';
import type { Envelope, Head, Heartbeat } from './transport.ts';

export interface PresenceOptions {
  readonly self: string;
  readonly version: string;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  send(to: string, envelope: Envelope): void;
  /** The head of a register here; undefined when this validator does not run it. */
  head(registerId: string): Head | undefined;
  /** Whether this validator is draining. */
  isDraining(): boolean;
  /** A validator that had been silent was heard. */
  onReturn(peer: string): void;
}

/** The latest contact with a validator. */
export interface Sighting {
  readonly validatorId: string;
  /** 0 for never. */
  readonly heardAtMs: number;
  readonly version: string;
}

/** A member of a register as this validator sees it. */
export interface OperationalMember {
  readonly validatorId: string;
  /** 0 for never; the current time for this validator itself. */
  readonly heardAtMs: number;
  /** Heard within the policy's operationalTtlSeconds. */
  readonly isOperational: boolean;
  readonly version: string;
  readonly height: number;
  readonly round: number;
}

interface Peer {
  readonly metAtMs: number;
  heardAtMs: number;
  version: string;
  /** The peer reports that it drains. */
  draining: boolean;
  /** Heads of the registers that this validator runs too. */
  readonly heads: Map<string, Head>;
  /** Registers to report to the peer, with the number of times each was reported. */
  readonly news: Map<string, number>;
}

const everyMs = 1_000;
const mostHeads = 256;
const mostTold = 5;
const mostStrangers = 256;
/** A longer silence counts as an absence. */
const awayMs = 5_000;
/** Three missed heartbeats. */
const silentMs = 3_000;

/**
 * Failure detection by heartbeats, one a second for each pair of validators whatever the number of shared registers. A
 * heartbeat reports the registers that advanced since the last one, so that a peer that missed everything catches up.
 */
export class Presence {
  readonly #options: PresenceOptions;
  readonly #peers = new Map<string, Peer>();
  readonly #members = new Map<string, readonly string[]>();
  readonly #clocks = new PeerClocks();
  /** Contact times of validators that do not share a register with this one yet; bounded. */
  readonly #strangers = new Map<string, number>();

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.scheduler.set('heartbeat', everyMs, () => this.#beat());
  }

  stop(): void {
    this.#options.scheduler.clear('heartbeat');
  }

  /** Validators that share a register with this one. */
  get peers(): readonly string[] {
    return [...this.#peers.keys()];
  }

  follow(registerId: string, members: readonly string[]): void {
    this.#members.set(registerId, members);
    const known = new Set([...this.#members.values()].flat());
    known.delete(this.#options.self);
    for (const id of known) if (!this.#peers.has(id)) this.#meet(id);
    for (const id of this.#peers.keys()) if (!known.has(id)) this.#part(id);
  }

  /** An authenticated message of a validator arrived. */
  heard(validatorId: string): void {
    const peer = this.#peers.get(validatorId);
    const nowMs = this.#options.clock.nowMs();
    if (peer === undefined) {
      this.#strangers.delete(validatorId);
      this.#strangers.set(validatorId, nowMs);
      const [oldest] = this.#strangers.keys();
      if (this.#strangers.size > mostStrangers && oldest !== undefined) this.#strangers.delete(oldest);
      return;
    }
    const wasAway = nowMs - peer.heardAtMs > awayMs;
    peer.heardAtMs = nowMs;
    if (wasAway) this.#options.onReturn(validatorId);
  }

  /** Handles the fields of a heartbeat other than its heads. */
  greeted(validatorId: string, { version, atMs, draining }: Heartbeat): void {
    const peer = this.#peers.get(validatorId);
    if (peer === undefined) return;
    peer.version = version.slice(0, 64);
    peer.draining = draining;
    this.#clocks.take(validatorId, atMs, this.#options.clock.nowMs());
  }

  /** Records the head of a register that another validator reports. */
  placed(validatorId: string, head: Head): void {
    const peer = this.#peers.get(validatorId);
    const own = this.#options.head(head.registerId);
    if (peer === undefined || own === undefined) return;
    peer.heads.set(head.registerId, head);
    if (head.height >= own.height) peer.news.delete(head.registerId);
    else if (!peer.news.has(head.registerId)) peer.news.set(head.registerId, 0);
  }

  /** A register has advanced here. */
  moved(registerId: string): void {
    for (const id of this.#members.get(registerId) ?? []) this.#peers.get(id)?.news.set(registerId, 0);
  }

  /** Reports all shared registers to the peer, since it may have missed heartbeats. */
  connected(validatorId: string): void {
    const peer = this.#peers.get(validatorId);
    if (peer === undefined) return;
    for (const [registerId, members] of this.#members) {
      if (members.includes(validatorId)) peer.news.set(registerId, 0);
    }
    this.#greet(validatorId, peer);
  }

  /** Whether the validator is silent or drains, so that its proposal is not awaited. A wrong guess only causes an early nil prevote. */
  isAway(validatorId: string): boolean {
    if (validatorId === this.#options.self) return this.#options.isDraining();
    const peer = this.#peers.get(validatorId);
    if (peer === undefined) return false;
    if (peer.draining) return true;
    return this.#options.clock.nowMs() - Math.max(peer.heardAtMs, peer.metAtMs) > silentMs;
  }

  sighting(validatorId: string): Sighting & { head(registerId: string): Head | undefined } {
    const peer = this.#peers.get(validatorId);
    return {
      validatorId,
      heardAtMs: peer?.heardAtMs ?? 0,
      version: peer?.version ?? '',
      head: (registerId) => peer?.heads.get(registerId),
    };
  }

  /** Milliseconds by which the local clock is ahead of the peers' clocks; undefined before the first heartbeat. */
  get clockAheadMs(): number | undefined {
    return this.#clocks.aheadMs;
  }

  #part(validatorId: string): void {
    this.#peers.delete(validatorId);
    this.#clocks.forget(validatorId);
  }

  #meet(validatorId: string): void {
    const heardAtMs = this.#strangers.get(validatorId) ?? 0;
    const metAtMs = this.#options.clock.nowMs();
    const peer = { metAtMs, heardAtMs, version: '', draining: false, heads: new Map(), news: new Map() };
    this.#strangers.delete(validatorId);
    this.#peers.set(validatorId, peer);
    this.#greet(validatorId, peer);
  }

  /** Sends a heartbeat to all peers at once. */
  greetAll(): void {
    for (const [id, peer] of this.#peers) this.#greet(id, peer);
  }

  #beat(): void {
    this.greetAll();
    this.#options.scheduler.set('heartbeat', everyMs, () => this.#beat());
  }

  #greet(to: string, peer: Peer): void {
    const { self, version, clock } = this.#options;
    const heads: Head[] = [];
    for (const [registerId, told] of peer.news) {
      if (heads.length === mostHeads) break;
      const head = this.#options.head(registerId);
      if (head !== undefined) heads.push(head);
      if (head === undefined || told + 1 >= mostTold) peer.news.delete(registerId);
      else peer.news.set(registerId, told + 1);
    }
    const atMs = clock.nowMs();
    const draining = this.#options.isDraining();
    const greeting = { validatorId: self, atMs, version, heads, draining };
    this.#options.send(to, { kind: 'heartbeat', registerId: '', ...greeting });
  }
}

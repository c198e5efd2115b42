import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '../sealing/scheduler.ts';
import { PeerClocks } from './clocks.ts';
import type { Envelope, Head, Heartbeat } from './transport.ts';

export interface PresenceOptions {
  readonly self: string;
  readonly version: string;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  send(to: string, envelope: Envelope): void;
  /** Where a register stands here; undefined when it is not validated here. */
  head(registerId: string): Head | undefined;
  /** Whether this validator proposes nothing. */
  isDraining(): boolean;
  /** A validator was heard that had been silent. */
  onReturn(peer: string): void;
}

/** What was last heard of a validator. */
export interface Sighting {
  readonly validatorId: string;
  /** 0 for never. */
  readonly heardAtMs: number;
  readonly version: string;
}

/** A member of a register as this validator sees it. */
export interface OperationalMember {
  readonly validatorId: string;
  /** 0 for never; now for this validator itself. */
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
  /** It proposes nothing, in its own words. */
  draining: boolean;
  /** Where its registers stand, as far as they are validated here too. */
  readonly heads: Map<string, Head>;
  /** Registers it must be told of, and how often it was. */
  readonly news: Map<string, number>;
}

const everyMs = 1_000;
const mostHeads = 256;
const mostTold = 5;
const mostStrangers = 256;
/** A validator that is heard after such a silence has been away. */
const awayMs = 5_000;
/** Three heartbeats that did not come. */
const silentMs = 3_000;

/**
 * Who is there: heartbeats between validators, one a second for each pair whatever the number of their registers (D24). A
 * heartbeat names the registers that have moved since the other was told, so that one that missed everything learns it.
 */
export class Presence {
  readonly #options: PresenceOptions;
  readonly #peers = new Map<string, Peer>();
  readonly #members = new Map<string, readonly string[]>();
  readonly #clocks = new PeerClocks();
  /** When others were heard that share no register with this one yet; bounded. */
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

  /** Something authentic came from a validator. */
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

  /** What a heartbeat says beside its heads. */
  greeted(validatorId: string, { version, atMs, draining }: Heartbeat): void {
    const peer = this.#peers.get(validatorId);
    if (peer === undefined) return;
    peer.version = version.slice(0, 64);
    peer.draining = draining;
    this.#clocks.take(validatorId, atMs, this.#options.clock.nowMs());
  }

  /** Where a register of another validator stands, in its own words. */
  placed(validatorId: string, head: Head): void {
    const peer = this.#peers.get(validatorId);
    const own = this.#options.head(head.registerId);
    if (peer === undefined || own === undefined) return;
    peer.heads.set(head.registerId, head);
    if (head.height >= own.height) peer.news.delete(head.registerId);
    else if (!peer.news.has(head.registerId)) peer.news.set(head.registerId, 0);
  }

  /** A register has moved here. */
  moved(registerId: string): void {
    for (const id of this.#members.get(registerId) ?? []) this.#peers.get(id)?.news.set(registerId, 0);
  }

  /** The other must be told of everything: it may have been away. */
  connected(validatorId: string): void {
    const peer = this.#peers.get(validatorId);
    if (peer === undefined) return;
    for (const [registerId, members] of this.#members) {
      if (members.includes(validatorId)) peer.news.set(registerId, 0);
    }
    this.#greet(validatorId, peer);
  }

  /** Whether nothing will be proposed by a validator: it is silent, or drains. Who is wrong about it only votes nil early. */
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

  /** Milliseconds by which the clock here is ahead of the others'; undefined while none was heard. */
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

  /** Says at once what the next heartbeat would say. */
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

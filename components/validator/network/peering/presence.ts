import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Envelope, Head, Heartbeat } from '../transport/transport.ts';
import { PeerClocks } from './peer-clocks.ts';

interface PresenceOptions {
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
export interface PeerContact {
  readonly validatorId: string;
  /** 0 for never. */
  readonly heardAtMs: number;
  readonly version: string;
}

interface Peer {
  readonly addedAtMs: number;
  heardAtMs: number;
  version: string;
  /** The peer reports that it drains. */
  draining: boolean;
  /** Heads of the registers that this validator runs too. */
  readonly heads: Map<string, Head>;
  /** Registers to report to the peer, with the number of times each was reported. */
  readonly pendingHeads: Map<string, number>;
}

const everyMs = 1_000;
const maxHeads = 256;
const maxReports = 5;
const maxUnknownPeers = 256;
/** A longer silence counts as an absence. */
const absentMs = 5_000;
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
  readonly #unknownPeers = new Map<string, number>();

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  start(): void {
    this.#options.scheduler.set('heartbeat', everyMs, () => this.#tick());
  }

  stop(): void {
    this.#options.scheduler.clear('heartbeat');
  }

  /** Validators that share a register with this one. */
  get peers(): readonly string[] {
    return [...this.#peers.keys()];
  }

  setMembers(registerId: string, members: readonly string[]): void {
    this.#members.set(registerId, members);
    const known = new Set([...this.#members.values()].flat());
    known.delete(this.#options.self);
    for (const id of known) if (!this.#peers.has(id)) this.#addPeer(id);
    for (const id of this.#peers.keys()) if (!known.has(id)) this.#removePeer(id);
  }

  /** An authenticated message of a validator arrived. */
  heard(validatorId: string): void {
    const peer = this.#peers.get(validatorId);
    const nowMs = this.#options.clock.nowMs();
    if (peer === undefined) {
      this.#unknownPeers.delete(validatorId);
      this.#unknownPeers.set(validatorId, nowMs);
      const [oldest] = this.#unknownPeers.keys();
      if (this.#unknownPeers.size > maxUnknownPeers && oldest !== undefined)
        this.#unknownPeers.delete(oldest);
      return;
    }
    const wasAway = nowMs - peer.heardAtMs > absentMs;
    peer.heardAtMs = nowMs;
    if (wasAway) this.#options.onReturn(validatorId);
  }

  /** Handles the fields of a heartbeat other than its heads. */
  onHeartbeat(validatorId: string, { version, atMs, draining }: Heartbeat): void {
    const peer = this.#peers.get(validatorId);
    if (peer === undefined) return;
    peer.version = version.slice(0, 64);
    peer.draining = draining;
    this.#clocks.take(validatorId, atMs, this.#options.clock.nowMs());
  }

  /** Records the head of a register that another validator reports. */
  onHead(validatorId: string, head: Head): void {
    const peer = this.#peers.get(validatorId);
    const own = this.#options.head(head.registerId);
    if (peer === undefined || own === undefined) return;
    peer.heads.set(head.registerId, head);
    if (head.height >= own.height) peer.pendingHeads.delete(head.registerId);
    else if (!peer.pendingHeads.has(head.registerId)) peer.pendingHeads.set(head.registerId, 0);
  }

  /** A register has advanced here. */
  onAdvanced(registerId: string): void {
    for (const id of this.#members.get(registerId) ?? [])
      this.#peers.get(id)?.pendingHeads.set(registerId, 0);
  }

  /** Reports all shared registers to the peer, since it may have missed heartbeats. */
  connected(validatorId: string): void {
    const peer = this.#peers.get(validatorId);
    if (peer === undefined) return;
    for (const [registerId, members] of this.#members) {
      if (members.includes(validatorId)) peer.pendingHeads.set(registerId, 0);
    }
    this.#sendHeartbeat(validatorId, peer);
  }

  /** Whether the validator is silent or drains, so that its proposal is not awaited. A wrong guess only causes an early nil prevote. */
  isAbsent(validatorId: string): boolean {
    if (validatorId === this.#options.self) return this.#options.isDraining();
    const peer = this.#peers.get(validatorId);
    if (peer === undefined) return false;
    if (peer.draining) return true;
    return this.#options.clock.nowMs() - Math.max(peer.heardAtMs, peer.addedAtMs) > silentMs;
  }

  contact(validatorId: string): PeerContact & { head(registerId: string): Head | undefined } {
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

  #removePeer(validatorId: string): void {
    this.#peers.delete(validatorId);
    this.#clocks.forget(validatorId);
  }

  #addPeer(validatorId: string): void {
    const heardAtMs = this.#unknownPeers.get(validatorId) ?? 0;
    const addedAtMs = this.#options.clock.nowMs();
    const peer = {
      addedAtMs,
      heardAtMs,
      version: '',
      draining: false,
      heads: new Map(),
      pendingHeads: new Map(),
    };
    this.#unknownPeers.delete(validatorId);
    this.#peers.set(validatorId, peer);
    this.#sendHeartbeat(validatorId, peer);
  }

  /** Sends a heartbeat to all peers at once. */
  sendHeartbeats(): void {
    for (const [id, peer] of this.#peers) this.#sendHeartbeat(id, peer);
  }

  #tick(): void {
    this.sendHeartbeats();
    this.#options.scheduler.set('heartbeat', everyMs, () => this.#tick());
  }

  #sendHeartbeat(to: string, peer: Peer): void {
    const { self, version, clock } = this.#options;
    const heads: Head[] = [];
    for (const [registerId, times] of peer.pendingHeads) {
      if (heads.length === maxHeads) break;
      const head = this.#options.head(registerId);
      if (head !== undefined) heads.push(head);
      if (head === undefined || times + 1 >= maxReports) peer.pendingHeads.delete(registerId);
      else peer.pendingHeads.set(registerId, times + 1);
    }
    const atMs = clock.nowMs();
    const draining = this.#options.isDraining();
    const fields = { validatorId: self, atMs, version, heads, draining };
    this.#options.send(to, { kind: 'heartbeat', registerId: '', ...fields });
  }
}

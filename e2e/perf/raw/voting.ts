import { hash } from 'node:crypto';
import type { RawLog } from './log.ts';
import { packTransactions, type RawTransaction } from './transaction.ts';
import { checkBytes } from './verifiers.ts';
import type { Wire } from './wire.ts';

export interface VotingOptions {
  readonly self: number;
  /** Raw public keys, one a member. */
  readonly keys: readonly Buffer[];
  readonly log: RawLog;
  readonly store: Wire;
  readonly signer: Wire;
  /** Connections to every other member, in their order; undefined at this member's index. */
  readonly others: readonly (Wire | undefined)[];
  verifyOne(key: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean;
}

/** As in the product's default policy and block interval. */
const mostPerDocket = 1_000;
const mostUnstored = 16;

type VoteKind = 'v' | 'c';

interface Height {
  proposal: Buffer | undefined;
  digest: Buffer | undefined;
  step: 'new' | 'proposed' | 'v' | 'c' | 'decided';
  /** Signatures by member. */
  readonly votes: { readonly v: Map<number, Buffer>; readonly c: Map<number, Buffer> };
  /** Received attestations, as checks. */
  readonly attestations: Map<number, Buffer>;
}

const headBytes = 6;

/**
 * The minimum of consensus: rotating proposer, proposal, prevotes and precommits of a quorum. Every own message is
 * signed by the signer while it is forced to the log, every foreign one is verified. An attestation is then sent to the
 * proposer, which has the docket stored while the next one is voted on. No member fails here: there are no timers, no
 * rounds and no locks.
 *
 * A message is kind:1 member:1 height:u32, then: proposal p = signature and ids; votes v and c = signature and digest;
 * attestation a = signature and digest; stored s = nothing; hint h = transactions.
 */
export class RawVoting {
  readonly #options: VotingOptions;
  readonly #heights = new Map<number, Height>();
  /** Verified, not decided, in the order of their arrival, by id. */
  readonly #ready = new Map<string, RawTransaction>();
  readonly #decided = new Map<number, readonly RawTransaction[]>();
  readonly #quorum: number;
  #height = 0;
  #storedHeight = 0;
  #writing = false;
  #previous: Buffer = Buffer.alloc(32);

  constructor(options: VotingOptions) {
    this.#options = options;
    this.#quorum = Math.floor((2 * options.keys.length) / 3) + 1;
  }

  /** Adds admitted transactions. */
  add(transactions: readonly RawTransaction[], ofClients: readonly RawTransaction[]): void {
    for (const transaction of transactions) this.#ready.set(transaction.id.toString('latin1'), transaction);
    if (ofClients.length > 0 && this.#options.keys.length > 1)
      this.#tell('h', 0, packTransactions(ofClients));
    this.#goOn();
  }

  /** Handles a message of another member, except announcements. */
  take(frame: Buffer): void {
    const kind = String.fromCharCode(frame[0] ?? 0);
    const member = frame[1] ?? 0;
    const height = frame.readUInt32LE(2);
    const rest = frame.subarray(headBytes);
    if (kind === 's') this.#storedHeight = Math.max(this.#storedHeight, height);
    else this.#note(kind, member, height, rest);
    this.#goOn();
  }

  #note(kind: string, member: number, height: number, rest: Buffer): void {
    if (height < (kind === 'a' ? this.#storedHeight : this.#height)) return;
    const at = this.#at(height);
    if (kind === 'p') at.proposal = rest;
    else if (kind === 'a') this.#noteAttestation(at, member, rest);
    else if (kind === 'v' || kind === 'c') this.#noteVote(at, kind, member, { height, rest });
  }

  #noteAttestation(at: Height, member: number, rest: Buffer): void {
    this.#assertSigned(member, rest.subarray(64), rest.subarray(0, 64));
    at.attestations.set(member, this.#checkOf(member, rest.subarray(64), rest.subarray(0, 64)));
  }

  #noteVote(at: Height, kind: VoteKind, member: number, said: { height: number; rest: Buffer }): void {
    const signature = said.rest.subarray(0, 64);
    const digest = said.rest.subarray(64);
    this.#assertSigned(member, bytesToSign(kind, said.height, digest), signature);
    at.votes[kind].set(member, signature);
  }

  #assertSigned(member: number, digest: Buffer, signature: Buffer): void {
    const key = this.#options.keys[member];
    if (key === undefined || !this.#options.verifyOne(key, digest, signature))
      throw new Error(`a message of member ${member} does not verify`);
  }

  #checkOf(member: number, digest: Buffer, signature: Buffer): Buffer {
    return Buffer.concat([this.#options.keys[member] ?? Buffer.alloc(0), signature, digest], checkBytes);
  }

  #at(height: number): Height {
    let at = this.#heights.get(height);
    if (at === undefined) {
      at = {
        proposal: undefined,
        digest: undefined,
        step: 'new',
        votes: { v: new Map(), c: new Map() },
        attestations: new Map(),
      };
      this.#heights.set(height, at);
    }
    return at;
  }

  #proposerOf(height: number): number {
    return height % this.#options.keys.length;
  }

  /** Takes every step that is possible now. */
  #goOn(): void {
    for (let before = -1; before !== this.#height; ) {
      before = this.#height;
      const at = this.#at(this.#height);
      if (at.step === 'new' && this.#mayPropose) void this.#propose(at, this.#height);
      if (!this.#isWhole(at, this.#height)) continue;
      if (at.votes.c.size >= this.#quorum) this.#decide(at, this.#height);
      else if (at.step === 'new' || at.step === 'proposed') void this.#vote(at, 'v', this.#height);
      else if (at.step === 'v' && at.votes.v.size >= this.#quorum) void this.#vote(at, 'c', this.#height);
    }
    void this.#write();
  }

  get #mayPropose(): boolean {
    const inFlight = this.#height - this.#storedHeight;
    const waiting = this.#ready.size;
    const isTurn = this.#proposerOf(this.#height) === this.#options.self;
    return isTurn && waiting > 0 && inFlight < mostUnstored && (inFlight === 0 || waiting >= mostPerDocket);
  }

  async #propose(at: Height, height: number): Promise<void> {
    at.step = 'proposed';
    const chosen = [...this.#ready.values()].slice(0, mostPerDocket);
    const ids = Buffer.concat(chosen.map(({ id }) => id));
    const digest = this.#digestOf(ids);
    const signature = await this.#sign(bytesToSign('p', height, digest), ids);
    const proposal = Buffer.concat([signature, ids]);
    this.#tell('p', height, proposal);
    at.proposal = proposal;
    this.#goOn();
  }

  /** Whether the proposal has arrived and is authentic, and every transaction of it is verified here. */
  #isWhole(at: Height, height: number): boolean {
    if (at.digest !== undefined) return true;
    if (at.proposal === undefined) return false;
    const ids = at.proposal.subarray(64);
    for (const id of idsIn(ids)) if (!this.#ready.has(id)) return false;
    const digest = this.#digestOf(ids);
    const proposer = this.#proposerOf(height);
    if (proposer !== this.#options.self)
      this.#assertSigned(proposer, bytesToSign('p', height, digest), at.proposal.subarray(0, 64));
    at.digest = digest;
    return true;
  }

  async #vote(at: Height, kind: VoteKind, height: number): Promise<void> {
    at.step = kind;
    const { digest } = at;
    if (digest === undefined) return;
    const signature = await this.#sign(bytesToSign(kind, height, digest), digest);
    this.#tell(kind, height, Buffer.concat([signature, digest]));
    at.votes[kind].set(this.#options.self, signature);
    this.#goOn();
  }

  /** Signs a message while it is forced to disk; the entry with the signature follows and is not waited for. */
  async #sign(digest: Buffer, entry: Buffer): Promise<Buffer> {
    const { signer, log } = this.#options;
    const [signature] = await Promise.all([signer.call(this.#request('g', digest)), log.force(entry)]);
    void log.force(signature);
    return signature;
  }

  #request(kind: 'g' | 'a', digest: Buffer): Buffer {
    return Buffer.concat([Buffer.from([kind.charCodeAt(0), this.#options.self]), digest]);
  }

  #decide(at: Height, height: number): void {
    at.step = 'decided';
    const ids = at.proposal?.subarray(64) ?? Buffer.alloc(0);
    const transactions: RawTransaction[] = [];
    for (const id of idsIn(ids)) {
      const transaction = this.#ready.get(id);
      if (transaction !== undefined) transactions.push(transaction);
      this.#ready.delete(id);
    }
    this.#decided.set(height, transactions);
    void this.#options.log.force(Buffer.concat([...at.votes.c.values()]));
    this.#previous = at.digest ?? this.#previous;
    this.#height = height + 1;
    void this.#attest(at, height);
    if (this.#proposerOf(height) !== this.#options.self) this.#forget(height);
  }

  #forget(height: number): void {
    this.#heights.delete(height);
    this.#decided.delete(height);
  }

  async #attest(at: Height, height: number): Promise<void> {
    const { self, signer, others } = this.#options;
    const digest = at.digest ?? Buffer.alloc(32);
    const signature = await signer.call(this.#request('a', digest));
    const writer = this.#proposerOf(height);
    if (writer === self) {
      at.attestations.set(self, this.#checkOf(self, digest, signature));
      void this.#write();
    } else {
      others[writer]?.tell(messageOf('a', self, height, Buffer.concat([signature, digest])));
    }
  }

  /** The proposer sends its docket to the store once the ones before are stored. */
  async #write(): Promise<void> {
    const height = this.#storedHeight;
    const { self, store } = this.#options;
    const at = this.#heights.get(height);
    const transactions = this.#decided.get(height);
    const isMine = this.#proposerOf(height) === self && at?.attestations.has(self) === true;
    if (this.#writing || !isMine || at?.digest === undefined || transactions === undefined) return;
    this.#writing = true;
    const signed = bytesToSign('c', height, at.digest);
    const checks = [
      ...[...at.votes.c].map(([member, signature]) => this.#checkOf(member, signed, signature)),
      ...at.attestations.values(),
    ];
    const head = Buffer.from(['!'.charCodeAt(0), checks.length]);
    await store.call(Buffer.concat([head, ...checks, packTransactions(transactions)]));
    this.#writing = false;
    this.#forget(height);
    this.#storedHeight = Math.max(this.#storedHeight, height + 1);
    this.#tell('s', height + 1, Buffer.alloc(0));
    this.#goOn();
  }

  #digestOf(ids: Buffer): Buffer {
    return hash('sha256', Buffer.concat([this.#previous, ids]), 'buffer');
  }

  #tell(kind: string, height: number, rest: Buffer): void {
    const { self, others } = this.#options;
    const message = messageOf(kind, self, height, rest);
    for (const other of others) other?.tell(message);
  }
}

function messageOf(kind: string, member: number, height: number, rest: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.write(kind, 0, 'latin1');
  head.writeUInt8(member, 1);
  head.writeUInt32LE(height, 2);
  return Buffer.concat([head, rest]);
}

function bytesToSign(kind: string, height: number, digest: Buffer): Buffer {
  return hash('sha256', Buffer.concat([Buffer.from(`${kind}${height}/`), digest]), 'buffer');
}

function* idsIn(ids: Buffer): Iterable<string> {
  for (let at = 0; at < ids.length; at += 32) yield ids.toString('latin1', at, at + 32);
}

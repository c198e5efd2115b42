import { decodeHex } from '#core/encoding/hex.ts';
import type { RpcClient } from '#kit/rpc/rpc.ts';
import { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { failure } from '../../errors.ts';
import { type CallerIdentity, connectTo } from './clients.ts';
import { parseCommit, parseRecords } from './parse.ts';
import type { CommitBundle, Envelope, SealedTransaction, Transport } from './transport.ts';
import { wireEnvelope } from './wire.ts';

interface OutboundStreamsOptions extends CallerIdentity {
  /** host:port that a validator announced; undefined when it has not. */
  findEndpoint(validatorId: string): Promise<string | undefined>;
}

type Client = RpcClient<typeof ConsensusService.method>;

const reconnectMs = { first: 250, last: 5_000 } as const;
const requestTimeoutMs = 5_000;
const maxQueued = 1_024;
const maxQueuedBytes = 16 * 1024 * 1024;
/** A stream that was unused for this long is closed. */
const unusedMs = 60_000;

/** The gRPC transport of a validator: one outgoing stream to each peer, opened with the first message. */
export class OutboundStreams implements Transport {
  readonly #options: OutboundStreamsOptions;
  readonly #streams = new Map<string, OutboundStream>();
  #onConnected: (validatorId: string) => void = () => {};
  #stopped = false;

  constructor(options: OutboundStreamsOptions) {
    this.#options = options;
  }

  /** Calls the listener from now on whenever a stream to a validator is open. */
  onConnected(listener: (validatorId: string) => void): void {
    this.#onConnected = listener;
  }

  send(to: string, envelope: Envelope): void {
    this.#stream(to)?.push(envelope);
  }

  async fetchRecords(
    to: string,
    registerId: string,
    transactionIds: readonly string[],
    signal?: AbortSignal,
  ): Promise<readonly SealedTransaction[]> {
    const client = await this.#client(to);
    const request = { registerId, transactionIds: transactionIds.map((txId) => decodeHex(txId, 32)) };
    return parseRecords(await client.getRecords(request, { timeoutMs: requestTimeoutMs, signal }));
  }

  async fetchCommit(
    to: string,
    registerId: string,
    height: number,
    signal?: AbortSignal,
  ): Promise<CommitBundle | undefined> {
    const client = await this.#client(to);
    const request = { registerId, height: BigInt(height) };
    return parseCommit(await client.getCommit(request, { timeoutMs: requestTimeoutMs, signal }));
  }

  /** The peer has connected here and is reachable, so the reconnect delay is skipped. */
  resetBackoff(validatorId: string): void {
    this.#streams.get(validatorId)?.resetBackoff();
  }

  stop(): void {
    this.#stopped = true;
    for (const stream of this.#streams.values()) stream.stop();
    this.#streams.clear();
  }

  async #client(to: string): Promise<Client> {
    const client = await this.#stream(to)?.client();
    if (client !== undefined) return client;
    throw failure('VALIDATOR_UNAVAILABLE', { message: `${to} has not announced itself` });
  }

  #stream(to: string): OutboundStream | undefined {
    if (this.#stopped) return undefined;
    let stream = this.#streams.get(to);
    if (stream === undefined) {
      this.#forgetUnused();
      stream = new OutboundStream(to, this.#options, (peer) => this.#onConnected(peer));
      this.#streams.set(to, stream);
    }
    return stream;
  }

  #forgetUnused(): void {
    const nowMs = this.#options.runtime.clock.nowMs();
    for (const [id, stream] of this.#streams) {
      if (nowMs - stream.usedAtMs < unusedMs) continue;
      stream.stop();
      this.#streams.delete(id);
    }
  }
}

interface QueuedEnvelope {
  readonly envelope: Envelope;
  readonly sizeBytes: number;
}

/** The stream to one peer, reopened whenever it ends. Undelivered messages are lost. */
class OutboundStream {
  readonly #id: string;
  readonly #options: OutboundStreamsOptions;
  readonly #onConnected: (validatorId: string) => void;
  #queue: QueuedEnvelope[] = [];
  /** Announcements are large and less urgent than votes, so they have a queue of their own. */
  #later: QueuedEnvelope[] = [];
  #queuedBytes = 0;
  #connection: { readonly endpoint: string; readonly client: Client } | undefined;
  #delayMs: number = reconnectMs.first;
  #wake: (() => void) | undefined;
  #stopped = false;
  usedAtMs = 0;

  constructor(id: string, options: OutboundStreamsOptions, onConnected: (validatorId: string) => void) {
    this.#id = id;
    this.#options = options;
    this.#onConnected = onConnected;
    this.usedAtMs = options.runtime.clock.nowMs();
    void this.#keepOpen();
  }

  push(envelope: Envelope): void {
    this.usedAtMs = this.#options.runtime.clock.nowMs();
    const sizeBytes = approximateBytes(envelope);
    if (envelope.kind === 'proposal') this.#sendAnnouncementsFirst(envelope.registerId);
    const queue = envelope.kind === 'hint' ? this.#later : this.#queue;
    queue.push({ envelope, sizeBytes });
    this.#queuedBytes += sizeBytes;
    while (queue.length > maxQueued || this.#queuedBytes > maxQueuedBytes) this.#drop();
    this.#wake?.();
  }

  /** Undefined when the peer has not announced itself. */
  async client(): Promise<Client | undefined> {
    this.usedAtMs = this.#options.runtime.clock.nowMs();
    const endpoint = await this.#options.findEndpoint(this.#id);
    if (this.#stopped || endpoint === undefined) return undefined;
    if (this.#connection?.endpoint === endpoint) return this.#connection.client;
    this.#connection?.client.close();
    const peer = { clientId: this.#id, address: endpoint };
    const client = connectTo(ConsensusService, peer, this.#options);
    this.#connection = { endpoint, client };
    return client;
  }

  resetBackoff(): void {
    this.#delayMs = reconnectMs.first;
    this.#wake?.();
  }

  stop(): void {
    this.#stopped = true;
    this.#connection?.client.close();
    this.#wake?.();
  }

  /** Announcements of a proposal's register are sent before it, which saves the receiver from fetching. */
  #sendAnnouncementsFirst(registerId: string): void {
    const isOfRegister = ({ envelope }: QueuedEnvelope) => envelope.registerId === registerId;
    this.#queue.push(...this.#later.filter(isOfRegister));
    this.#later = this.#later.filter((queued) => !isOfRegister(queued));
  }

  #shift(): QueuedEnvelope | undefined {
    const first = this.#queue.shift() ?? this.#later.shift();
    this.#queuedBytes -= first?.sizeBytes ?? 0;
    return first;
  }

  /** Drops the oldest message when the queue is full, announcements first. */
  #drop(): void {
    const first = this.#later.shift() ?? this.#queue.shift();
    this.#queuedBytes -= first?.sizeBytes ?? 0;
  }

  async #keepOpen(): Promise<void> {
    const { log } = this.#options.runtime;
    while (!this.#stopped) {
      try {
        await this.#follow();
      } catch (error) {
        if (!this.#stopped)
          log.debug(
            { err: error, validatorId: this.#id },
            'the stream to a validator was lost; it is reopened',
          );
      }
      // Unsent messages are outdated; the exchange after reconnecting replaces them.
      this.#queue = [];
      this.#later = [];
      this.#queuedBytes = 0;
      if (!this.#stopped) await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#delayMs * (0.5 + Math.random() / 2));
    const before = this.#delayMs;
    this.#wake = () => {
      if (this.#stopped || this.#delayMs < before) resolve();
    };
    this.#delayMs = Math.min(this.#delayMs * 2, reconnectMs.last);
    await promise;
    clearTimeout(timer);
    this.#wake = undefined;
  }

  /** Runs one stream from its opening until it ends. */
  async #follow(): Promise<void> {
    const client = await this.client();
    if (client === undefined) return;
    const stream = await client.stream.open();
    let ended = false;
    const end = () => {
      ended = true;
      this.#wake?.();
    };
    const responses = stream.responses[Symbol.asyncIterator]();
    try {
      const first = await responses.next();
      if (first.done === true) return;
      this.#delayMs = reconnectMs.first;
      this.#onConnected(this.#id);
      // The peer sends nothing after the acknowledgement; the iteration ends with the stream.
      responses.next().then(end, end);
      while (!ended && !this.#stopped) {
        const next = this.#shift();
        if (next === undefined) await this.#nextMessage(() => ended);
        else await stream.send(wireEnvelope(next.envelope));
      }
    } finally {
      stream.cancel();
    }
  }

  async #nextMessage(isOver: () => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    if (this.#queue.length + this.#later.length > 0 || isOver() || this.#stopped) resolve();
    await promise;
    this.#wake = undefined;
  }
}

/** Approximate memory size of an envelope in bytes. */
function approximateBytes(envelope: Envelope): number {
  const base = 512;
  if (envelope.kind === 'proposal') return base + 200 * envelope.recordHashes.length;
  if (envelope.kind !== 'hint') return base;
  const bytes = envelope.transactions.reduce(
    (sum, { record, payload }) => sum + record.length + payload.length,
    0,
  );
  return base + 80 * envelope.transactionIds.length + bytes;
}

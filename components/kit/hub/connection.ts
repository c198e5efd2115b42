import { isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { HubClient, Invocation, InvokedStream } from './calls.ts';
import type { Batch } from './frames.ts';
import type { HubLimits } from './limits.ts';
import {
  type ClientMessage,
  closeRecord,
  completionOf,
  invocationOf,
  judgeHandshake,
  parseMessage,
  pingRecord,
  RecordSplitter,
  recordOf,
  streamItemOf,
} from './protocol.ts';
import { refusalTextOf } from './refusal-text.ts';
import type { Transport, TransportEvents } from './transport.ts';

/** What a connection requires of its hub. */
export interface ConnectionHost {
  readonly limits: HubLimits;
  nowMs(): number;
  /** Runs after the handshake, before the first invocation. */
  opened(connection: HubConnection): Promise<void>;
  /**
   * Runs a method; the result answers the client.
   * @throws AppError, whose text answers the client
   */
  invoke(connection: HubConnection, invocation: Invocation): Promise<unknown>;
  /** Runs once, when nothing reaches the client any more. */
  ended(connection: HubConnection): void;
  /** An invocation failed in a way that its client cannot know more about. */
  failed(error: unknown): void;
}

/** What judges the subscription to a group again. */
export interface Judgement {
  /** Connections with equal texts are judged alike. */
  authorityOf(caller: Caller): string;
  judge(caller: Caller): Promise<void>;
}

interface Work {
  readonly bytes: number;
  run(): Promise<void>;
}

const ping = recordOf(pingRecord);
const noBytes = Buffer.alloc(0);

/** One client of a hub, whatever its transport. */
export class HubConnection implements TransportEvents, HubClient {
  readonly id: string;
  readonly userId: string;
  /** Groups that the connection is in. */
  readonly groups = new Map<string, Judgement>();
  /** `since` of the query. */
  readonly sinceMs: number | undefined;
  caller: Caller;
  judgedAtMs: number;
  readonly #host: ConnectionHost;
  readonly #splitter: RecordSplitter;
  readonly #startedAtMs: number;
  #transport: Transport | undefined;
  #state: 'handshake' | 'open' | 'ended' = 'handshake';
  #heardAtMs: number;
  #sentAtMs: number;
  #work: Work[] = [];
  #workBytes = 0;
  #isWorking = false;
  #substituted: Buffer | undefined;
  /** Created for the methods that need it. */
  #ended: AbortController | undefined;
  /** Streams that run, by the id of their invocation. */
  readonly #streams = new Map<string, AbortController>();

  constructor(
    host: ConnectionHost,
    facts: { id: string; userId: string; caller: Caller; sinceMs: number | undefined },
  ) {
    const now = host.nowMs();
    this.id = facts.id;
    this.userId = facts.userId;
    this.caller = facts.caller;
    this.sinceMs = facts.sinceMs;
    this.judgedAtMs = now;
    this.#host = host;
    this.#splitter = new RecordSplitter(host.limits.recordBytes);
    this.#startedAtMs = now;
    this.#heardAtMs = now;
    this.#sentAtMs = now;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  get hasEnded(): boolean {
    return this.#state === 'ended';
  }

  get transport(): Transport | undefined {
    return this.#transport;
  }

  get ended(): AbortSignal {
    this.#ended ??= new AbortController();
    if (this.hasEnded) this.#ended.abort();
    return this.#ended.signal;
  }

  attach(transport: Transport): void {
    this.#transport = transport;
  }

  onBytes(bytes: Buffer): void {
    if (this.hasEnded) return;
    this.#heardAtMs = this.#host.nowMs();
    try {
      for (const record of this.#splitter.push(bytes)) {
        this.#receive(record);
        if (this.hasEnded) return;
      }
    } catch (error) {
      this.close(isAppError(error, 'invalid') ? error.message : 'The server failed.', false);
    }
  }

  onGone(): void {
    this.#end(noBytes);
  }

  /** Ends the connection with a close record. */
  close(error: string | undefined, allowReconnect: boolean): void {
    const isOpen = this.#state === 'open';
    this.#end(isOpen ? closeRecord(error, allowReconnect) : recordOf({ error: error ?? '' }));
  }

  #end(last: Buffer): void {
    if (this.hasEnded) return;
    this.#state = 'ended';
    this.#work = [];
    this.#transport?.end(last);
    this.#host.ended(this);
    this.#ended?.abort();
    for (const stream of this.#streams.values()) stream.abort();
  }

  /** Sends one record of the hub itself. */
  send(record: Buffer): void {
    if (this.hasEnded) return;
    this.#transport?.send(record);
    this.#sentAtMs = this.#host.nowMs();
  }

  sendEvent(target: string, args: readonly unknown[]): void {
    this.#answer(invocationOf(target, args));
  }

  /** Sends what an invocation leads to; a client that does not read it is closed. */
  #answer(record: Buffer): void {
    this.send(record);
    const unsent = this.#transport?.unsentBytes() ?? 0;
    if (unsent > this.#host.limits.closeBytes) this.close('The client reads too slowly.', true);
  }

  /** Sends signals; a connection that reads too slowly gets fewer of them, or is closed. */
  deliver(batch: Batch): void {
    if (!this.isOpen || this.#transport === undefined) return;
    const { slowBytes, closeBytes } = this.#host.limits;
    if (this.#transport.unsentBytes() + batch.bytes.length <= slowBytes) {
      this.#substituted = undefined;
      this.send(batch.bytes);
      return;
    }
    for (const frame of batch.frames) {
      const isSlow = this.#transport.unsentBytes() + frame.bytes.length > slowBytes;
      const bytes = isSlow && frame.instead !== undefined ? frame.instead : frame.bytes;
      const isRepeated = this.#substituted?.equals(bytes) === true;
      this.#substituted = bytes === frame.instead ? bytes : undefined;
      if (!isRepeated) this.send(bytes);
    }
    if (this.#transport.unsentBytes() > closeBytes) this.close('The client reads too slowly.', true);
  }

  /** Judges timeouts and sends pings. */
  tick(nowMs: number): void {
    const { handshakeMs, clientTimeoutMs, pingMs } = this.#host.limits;
    if (this.#state === 'handshake' && nowMs - this.#startedAtMs >= handshakeMs) {
      this.close('The handshake did not arrive in time.', false);
    } else if (this.#transport?.tick(nowMs) === false) {
      this.onGone();
    } else if (this.isOpen && this.#transport?.isPinged === true) {
      if (nowMs - this.#heardAtMs >= clientTimeoutMs) this.close('The client is silent.', true);
      else if (nowMs - this.#sentAtMs >= pingMs) this.send(ping);
    }
  }

  #receive(record: string): void {
    if (this.#state === 'open') this.#act(parseMessage(record), Buffer.byteLength(record));
    else this.#shakeHands(record);
  }

  #shakeHands(record: string): void {
    const refusal = judgeHandshake(record);
    if (refusal !== undefined) {
      this.close(refusal, false);
      return;
    }
    this.#state = 'open';
    this.send(recordOf({}));
    this.#enqueue({ bytes: 0, run: () => this.#host.opened(this) });
  }

  #act(message: ClientMessage, bytes: number): void {
    if (message.kind === 'close') {
      this.close(undefined, false);
    } else if (message.kind === 'invocation') {
      this.#enqueue({ bytes, run: () => this.#invoke(message) });
    } else if (message.kind === 'stream') {
      this.#enqueue({ bytes, run: async () => this.#startStream(message) });
    } else if (message.kind === 'cancellation') {
      this.#enqueue({ bytes, run: async () => this.#streams.get(message.invocationId)?.abort() });
    }
  }

  /** Invocations run one after the other, in their order. */
  #enqueue(work: Work): void {
    this.#workBytes += work.bytes;
    const { waitingBytes, waitingInvocations } = this.#host.limits;
    if (this.#workBytes > waitingBytes || this.#work.length >= waitingInvocations) {
      this.close('Too many invocations wait for an earlier one.', false);
      return;
    }
    this.#work.push(work);
    if (!this.#isWorking) void this.#runAll();
  }

  async #runAll(): Promise<void> {
    this.#isWorking = true;
    for (let work = this.#work.shift(); work !== undefined; work = this.#work.shift()) {
      try {
        await work.run();
      } catch (error) {
        this.#host.failed(error);
        this.close('The server failed.', true);
      }
      this.#workBytes -= work.bytes;
    }
    this.#isWorking = false;
  }

  async #invoke({ target, arguments: args, invocationId }: ClientMessage & { kind: 'invocation' }) {
    const outcome = await this.#outcomeOf({ target, args, stream: undefined });
    if (invocationId !== undefined) this.#answer(completionOf(invocationId, outcome));
  }

  /** Later invocations do not wait for the end of a stream. */
  #startStream({ target, arguments: args, invocationId }: ClientMessage & { kind: 'stream' }): void {
    if (this.#streams.has(invocationId)) {
      this.close('The id of a stream is in use.', false);
    } else if (this.#streams.size >= this.#host.limits.streamsPerConnection) {
      this.#answer(completionOf(invocationId, { error: 'The connection has too many streams.' }));
    } else {
      void this.#stream(invocationId, { target, args });
    }
  }

  async #stream(invocationId: string, method: Pick<Invocation, 'target' | 'args'>): Promise<void> {
    const cancel = new AbortController();
    this.#streams.set(invocationId, cancel);
    const stream: InvokedStream = {
      cancelled: cancel.signal,
      send: (item) => {
        if (!cancel.signal.aborted) this.#answer(streamItemOf(invocationId, item));
      },
    };
    const outcome = await this.#outcomeOf({ ...method, stream });
    this.#streams.delete(invocationId);
    this.#answer(completionOf(invocationId, 'error' in outcome ? outcome : {}));
  }

  async #outcomeOf(invocation: Invocation): Promise<{ result: unknown } | { error: string }> {
    try {
      return { result: (await this.#host.invoke(this, invocation)) ?? null };
    } catch (error) {
      const { text, isFailure } = refusalTextOf(error);
      if (isFailure) this.#host.failed(error);
      return { error: text };
    }
  }
}

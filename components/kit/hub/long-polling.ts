import type { ServerResponse } from 'node:http';
import type { Cancel, Timers } from '#kit/clock/timing.ts';
import type { HubLimits } from './limits.ts';
import type { Transport } from './transport.ts';

interface Poll {
  readonly response: ServerResponse;
  readonly endsAtMs: number;
}

/** The transport of polls that are held until there is something to send; the client sends by POST. */
export class LongPolling implements Transport {
  readonly name = 'LongPolling';
  readonly isPinged = false;
  readonly #limits: HubLimits;
  readonly #nowMs: () => number;
  readonly #timers: Timers;
  #cancelFlush: Cancel | undefined;
  #queue: Buffer[] = [];
  #bytes = 0;
  #poll: Poll | undefined;
  #isStarted = false;
  #hasEnded = false;
  #idleSinceMs: number;

  constructor(limits: HubLimits, nowMs: () => number, timers: Timers) {
    this.#limits = limits;
    this.#nowMs = nowMs;
    this.#timers = timers;
    this.#idleSinceMs = nowMs();
  }

  /** Whether the connection has ended and the client took its last records. */
  get isDone(): boolean {
    return this.#hasEnded && this.#bytes === 0;
  }

  /**
   * Answers a poll, soon when something waits: 200 with records or without, 204 when the connection has ended. The
   * first one is answered at once, without records. A poll that arrives while another one is held ends that one.
   */
  poll(response: ServerResponse): void {
    this.#answer([]);
    this.#poll = { response, endsAtMs: this.#nowMs() + this.#limits.pollMs };
    response.once('close', () => this.#closed(response));
    if (this.isDone) this.#answer([], 204);
    else if (this.#isStarted) this.#flush();
    else this.#answer([]);
    this.#isStarted = true;
  }

  unsentBytes(): number {
    return this.#bytes;
  }

  send(records: Buffer): void {
    this.#queue.push(records);
    this.#bytes += records.length;
    this.#flush();
  }

  end(last: Buffer): void {
    this.#hasEnded = true;
    if (last.length > 0) this.send(last);
    if (this.isDone) this.#answer([], 204);
  }

  tick(nowMs: number): boolean {
    if (this.#poll === undefined) return nowMs - this.#idleSinceMs < this.#limits.pollGapMs;
    if (nowMs >= this.#poll.endsAtMs) this.#answer([]);
    return true;
  }

  /** Polls that follow each other carry what came meanwhile, so that a busy log does not cost a request a record. */
  #flush(): void {
    if (this.#poll === undefined || this.#bytes === 0) return;
    const earlyMs = this.#limits.pollSpacingMs - (this.#nowMs() - this.#idleSinceMs);
    if (earlyMs <= 0 || this.#hasEnded) {
      this.#sendQueue();
      return;
    }
    // The timer alone decides when it fires: a clock that was set back must not hold records.
    this.#cancelFlush ??= this.#timers.after(Math.min(earlyMs, this.#limits.pollSpacingMs), () => {
      this.#cancelFlush = undefined;
      if (this.#poll !== undefined && this.#bytes > 0) this.#sendQueue();
    });
  }

  #sendQueue(): void {
    const records = this.#queue;
    this.#queue = [];
    this.#bytes = 0;
    this.#answer(records);
  }

  #answer(records: readonly Buffer[], status: 200 | 204 = 200): void {
    const response = this.#poll?.response;
    if (response === undefined) return;
    this.#poll = undefined;
    this.#idleSinceMs = this.#nowMs();
    const body = Buffer.concat(records);
    response.once('close', () => {
      if (!response.writableFinished) this.#giveBack(records);
    });
    response.writeHead(status, {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      ...(status === 200 && { 'content-length': body.length }),
    });
    response.end(body);
  }

  /** The client left before it had the answer; the next poll gets it. */
  #giveBack(records: readonly Buffer[]): void {
    this.#queue.unshift(...records);
    for (const { length } of records) this.#bytes += length;
    this.#flush();
  }

  #closed(response: ServerResponse): void {
    if (this.#poll?.response !== response) return;
    this.#poll = undefined;
    this.#idleSinceMs = this.#nowMs();
  }
}

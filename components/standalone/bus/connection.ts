import type { Socket } from 'node:net';
import { type PollLoop, startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Logger } from '#kit/log/log.ts';
import { type ConnectOptions, type Operation, Parser, ProtocolError, type Publication } from './parser.ts';
import type { Router, Subscription } from './router.ts';
import { isPublishSubject, isSubscribeSubject } from './subjects.ts';

const subscriptionsLimit = 10_000;
const pingsOutstandingLimit = 2;
const NO_RESPONDERS = Buffer.from('NATS/1.0 503\r\n\r\n');
const CRLF = Buffer.from('\r\n');

interface Limits {
  readonly payloadBytes: number;
  /** Bytes that may wait for one slow client. */
  readonly pendingBytes: number;
  readonly pingIntervalMs: number;
}

export interface Hub {
  readonly router: Router<Connection>;
  readonly limits: Limits;
  readonly log: Logger;
}

/** One client of the broker. */
export class Connection {
  readonly #hub: Hub;
  readonly #socket: Socket;
  readonly #parser: Parser;
  readonly #subscriptions = new Map<string, Subscription<Connection>>();
  readonly #pings: PollLoop;
  #options: ConnectOptions = { verbose: false, echo: true, headers: false, noResponders: false };
  #pingsOutstanding = 0;
  #corked = false;
  #closed = false;

  constructor(socket: Socket, hub: Hub, greeting: string) {
    this.#hub = hub;
    this.#socket = socket;
    this.#parser = new Parser(hub.limits.payloadBytes);
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#forget());
    this.#pings = startPollLoop(
      async () => {
        this.#ping();
        return hub.limits.pingIntervalMs;
      },
      { firstMs: hub.limits.pingIntervalMs },
    );
    socket.write(greeting);
  }

  end(): void {
    this.#socket.destroy();
  }

  /** Sends a message of a publisher to one of this client's subscriptions. */
  deliver(subscription: Subscription<Connection>, publication: Publication): void {
    subscription.delivered += 1;
    if (subscription.max > 0 && subscription.delivered >= subscription.max) this.#drop(subscription);
    const { subject, reply, body } = publication;
    // A client that did not request headers gets the payload alone.
    const headerBytes = this.#options.headers ? publication.headerBytes : 0;
    const payload = headerBytes === publication.headerBytes ? body : body.subarray(publication.headerBytes);
    const back = reply === undefined ? '' : `${reply} `;
    const sizes = headerBytes > 0 ? `${headerBytes} ${payload.length}` : `${payload.length}`;
    const verb = headerBytes > 0 ? 'HMSG' : 'MSG';
    this.#write(Buffer.from(`${verb} ${subject} ${subscription.sid} ${back}${sizes}\r\n`), payload, CRLF);
  }

  #read(chunk: Buffer): void {
    if (this.#closed) return;
    try {
      for (const operation of this.#parser.read(chunk)) {
        this.#apply(operation);
        if (this.#closed) return;
      }
    } catch (error) {
      this.#fail(error instanceof ProtocolError ? error.message : 'Parser Error');
    }
  }

  #apply(operation: Operation): void {
    switch (operation.kind) {
      case 'connect':
        this.#options = operation.options;
        this.#ok();
        break;
      case 'ping':
        this.#write(Buffer.from('PONG\r\n'));
        break;
      case 'pong':
        this.#pingsOutstanding = 0;
        break;
      case 'sub':
        this.#subscribe(operation);
        break;
      case 'unsub':
        this.#unsubscribe(operation.sid, operation.max);
        break;
      case 'pub':
        this.#publish(operation);
        break;
    }
  }

  #subscribe({ subject, queue, sid }: Extract<Operation, { kind: 'sub' }>): void {
    if (!isSubscribeSubject(subject)) {
      this.#warn('Invalid Subject');
      return;
    }
    if (this.#subscriptions.size >= subscriptionsLimit) {
      this.#fail('Maximum Subscriptions Exceeded');
      return;
    }
    // A known sid is answered and otherwise ignored, as nats-server does.
    if (!this.#subscriptions.has(sid)) {
      const subscription = { owner: this, sid, subject, delivered: 0, max: 0, ...(queue && { queue }) };
      this.#subscriptions.set(sid, subscription);
      this.#hub.router.add(subscription);
    }
    this.#ok();
  }

  #unsubscribe(sid: string, max: number): void {
    const subscription = this.#subscriptions.get(sid);
    if (subscription !== undefined) {
      subscription.max = max;
      if (max === 0 || subscription.delivered >= max) this.#drop(subscription);
    }
    this.#ok();
  }

  #publish(publication: Publication): void {
    const { subject, reply } = publication;
    if (!isPublishSubject(subject) || (reply !== undefined && !isPublishSubject(reply))) {
      this.#warn('Invalid Publish Subject');
      return;
    }
    if (publication.headerBytes > 0 && !this.#options.headers) {
      this.#fail('Message Headers Not Supported');
      return;
    }
    let delivered = 0;
    for (const subscription of this.#hub.router.receivers(subject)) {
      if (subscription.owner === this && !this.#options.echo) continue;
      subscription.owner.deliver(subscription, publication);
      delivered += 1;
    }
    if (delivered === 0 && reply !== undefined && this.#options.noResponders) this.#noResponders(reply);
    this.#ok();
  }

  /** Answers the requester at once that there is no subscriber: status 503 to its own reply subscription. */
  #noResponders(reply: string): void {
    const answer: Publication = {
      kind: 'pub',
      subject: reply,
      headerBytes: NO_RESPONDERS.length,
      body: NO_RESPONDERS,
    };
    for (const subscription of this.#hub.router.receivers(reply)) {
      if (subscription.owner === this) this.deliver(subscription, answer);
    }
  }

  #ping(): void {
    if (this.#pingsOutstanding >= pingsOutstandingLimit) {
      this.#fail('Stale Connection');
      return;
    }
    this.#pingsOutstanding += 1;
    this.#write(Buffer.from('PING\r\n'));
  }

  #ok(): void {
    if (this.#options.verbose) this.#write(Buffer.from('+OK\r\n'));
  }

  #warn(text: string): void {
    this.#write(Buffer.from(`-ERR '${text}'\r\n`));
  }

  #fail(text: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#hub.log.debug({ reason: text }, 'bus client refused');
    this.#forget();
    this.#socket.end(`-ERR '${text}'\r\n`);
    // A client that does not close its side is disconnected.
    setTimeout(() => this.#socket.destroy(), 1_000).unref();
  }

  #write(...parts: readonly Buffer[]): void {
    if (this.#closed || this.#socket.destroyed) return;
    if (this.#socket.writableLength > this.#hub.limits.pendingBytes) {
      // A client that does not read cannot be sent an error.
      this.#hub.log.warn({ pendingBytes: this.#socket.writableLength }, 'slow bus client disconnected');
      this.#closed = true;
      this.#forget();
      this.#socket.destroy();
      return;
    }
    this.#cork();
    for (const part of parts) this.#socket.write(part);
  }

  /** Collects everything written in one turn of the event loop into one system call. */
  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.#socket.cork();
    process.nextTick(() => {
      this.#corked = false;
      this.#socket.uncork();
    });
  }

  #drop(subscription: Subscription<Connection>): void {
    this.#subscriptions.delete(subscription.sid);
    this.#hub.router.remove(subscription);
  }

  #forget(): void {
    this.#closed = true;
    void this.#pings.stop();
    for (const subscription of this.#subscriptions.values()) this.#hub.router.remove(subscription);
    this.#subscriptions.clear();
  }
}

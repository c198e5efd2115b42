import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Counter, Gauge } from 'prom-client';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { backgroundTimers, type Cancel, type Timers } from '#kit/clock/timing.ts';
import { type Upgrade, upgradeOf } from '#kit/http/http.ts';
import type { Behaviour } from './behaviour.ts';
import type { Invocation } from './calls.ts';
import { type ConnectionHost, HubConnection } from './connection.ts';
import type { HubParts } from './declaration.ts';
import { eventStreamTransport } from './event-stream.ts';
import { Judge } from './judge.ts';
import type { HubLimits } from './limits.ts';
import { LongPolling } from './long-polling.ts';
import { ownAddress, Peers, unknownConnection } from './peers.ts';
import { Sessions } from './sessions.ts';
import { type ConnectionToken, type ConnectionTokens, connectionTokens } from './token.ts';
import { type WebSocketOpener, webSocketOpener, webSocketTransport } from './websocket.ts';

interface ServerParts extends Omit<HubParts, 'bus' | 'limits'> {
  readonly path: string;
  readonly behaviour: Behaviour;
  readonly limits: HubLimits;
  readonly key: Buffer;
}

/** A request to a hub, parsed. */
interface HubRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** A person; the policy of the routes has refused everyone else. */
  readonly caller: Caller;
  /** Text of the connection token. */
  readonly token: string | undefined;
  readonly sinceMs: number | undefined;
}

const noBytes = Buffer.alloc(0);

/** A hub on one replica. */
export class HubServer implements ConnectionHost {
  readonly limits: HubLimits;
  readonly #parts: ServerParts;
  readonly #tokens: ConnectionTokens;
  readonly #sessions: Sessions;
  readonly #behaviour: Behaviour;
  readonly #peers: Peers;
  readonly #sockets: WebSocketOpener;
  readonly #judge: Judge;
  readonly #timers: Timers;
  readonly #open: Gauge;
  readonly #opened: Counter;
  #cancelTick: Cancel = () => undefined;
  #isStopping = false;

  constructor(parts: ServerParts) {
    const { limits, runtime, timers } = parts;
    const { log, telemetry } = runtime;
    this.limits = limits;
    this.#parts = parts;
    this.#tokens = connectionTokens(parts.key);
    this.#sessions = new Sessions(limits);
    this.#behaviour = parts.behaviour;
    this.#peers = new Peers(parts.workload, limits);
    this.#sockets = webSocketOpener(limits.messageBytes);
    this.#judge = new Judge({ authenticator: parts.authenticator, judgeMs: limits.judgeMs, log });
    this.#timers = timers ?? backgroundTimers();
    this.#open = telemetry.gauge('hub_connections', 'Open connections of hubs', ['hub']);
    this.#opened = telemetry.counter('hub_connections_total', 'Connections of hubs', ['hub', 'transport']);
  }

  async start(): Promise<void> {
    await this.#behaviour.start();
    this.#scheduleTick();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#cancelTick();
    for (const connection of this.#sessions.all()) connection.close('The replica is stopping.', true);
    await this.#behaviour.stop();
    this.#peers.stop();
  }

  nowMs(): number {
    return this.#parts.runtime.clock.nowMs();
  }

  /** The answer to a negotiation; nothing is kept of it. */
  negotiate({ request, caller }: Pick<HubRequest, 'request' | 'caller'>, version: number) {
    this.#assertRunning();
    const scope = this.#scopeOf(caller);
    this.#behaviour.assertMayConnect(caller);
    this.#sessions.assertRoom(scope.userId);
    const { id, text } = this.#tokens.issue(scope, ownAddress(request), this.nowMs());
    const ids =
      version === 0
        ? { negotiateVersion: 0, connectionId: text }
        : { negotiateVersion: 1, connectionId: id, connectionToken: text };
    return {
      ...ids,
      availableTransports: [
        { transport: 'WebSockets', transferFormats: ['Text', 'Binary'] },
        { transport: 'ServerSentEvents', transferFormats: ['Text'] },
        { transport: 'LongPolling', transferFormats: ['Text'] },
      ],
    };
  }

  /** GET: a WebSocket, an event stream, or a poll. */
  async receive(given: HubRequest): Promise<FastifyReply> {
    this.#assertRunning();
    const upgrade = upgradeOf(given.request.raw);
    if (upgrade !== undefined) return this.#openSocket(given, upgrade);
    if (given.request.headers.upgrade !== undefined) {
      throw new AppError('invalid', genericCode('invalid'), 'The WebSocket handshake is malformed.');
    }
    const token = this.#verify(given);
    const found = this.#find(given, token);
    if (found === 'elsewhere') return await this.#peers.hand(given.request, given.reply, token.owner);
    const isStream = (given.request.headers.accept ?? '').includes('text/event-stream');
    return isStream ? this.#openStream(given, token) : this.#poll(given, token);
  }

  /** POST: records of a client whose connection is an event stream or polls. */
  async send(given: HubRequest): Promise<FastifyReply> {
    this.#assertRunning();
    const token = this.#verify(given);
    const found = this.#find(given, token);
    if (found === 'elsewhere') return await this.#peers.hand(given.request, given.reply, token.owner);
    if (found === undefined) throw unknownConnection();
    if (found.transport?.name === 'WebSockets') throw otherTransport();
    const { body } = given.request;
    found.onBytes(body instanceof Buffer ? body : noBytes);
    return given.reply.code(200).type('text/plain; charset=utf-8').send('');
  }

  /** DELETE: the client ends its connection. */
  async end(given: HubRequest): Promise<FastifyReply> {
    const token = this.#verify(given);
    const found = this.#find(given, token);
    if (found === 'elsewhere') return await this.#peers.hand(given.request, given.reply, token.owner);
    if (found === undefined && this.#sessions.findDraining(token.id) === undefined) throw unknownConnection();
    found?.onGone();
    return given.reply.code(202).type('text/plain; charset=utf-8').send('');
  }

  async opened(connection: HubConnection): Promise<void> {
    await this.#behaviour.opened(connection);
  }

  async invoke(connection: HubConnection, invocation: Invocation): Promise<unknown> {
    return await this.#behaviour.invoke(connection, invocation);
  }

  ended(connection: HubConnection): void {
    this.#behaviour.ended(connection);
    this.#sessions.remove(connection, this.nowMs());
    this.#open.dec({ hub: this.#parts.path });
  }

  failed(error: unknown): void {
    this.#parts.runtime.log.error({ err: error, hub: this.#parts.path }, 'an invocation of a hub failed');
  }

  #assertRunning(): void {
    if (!this.#isStopping) return;
    const options = { elsewhere: true, retryAfterSeconds: 1 } as const;
    throw new AppError('unavailable', genericCode('unavailable'), 'The service is stopping.', options);
  }

  #scopeOf({ platformUserId }: Caller): { readonly path: string; readonly userId: string } {
    if (platformUserId === undefined) {
      throw new AppError(
        'unauthenticated',
        genericCode('unauthenticated'),
        'The token names no platform user.',
      );
    }
    return { path: this.#parts.path, userId: platformUserId };
  }

  #verify({ caller, token }: HubRequest): ConnectionToken {
    if (token === undefined) throw new AppError('invalid', genericCode('invalid'), 'The query needs an id.');
    const verified = this.#tokens.verify(this.#scopeOf(caller), token);
    if (verified === undefined) throw unknownConnection();
    return verified;
  }

  /** The connection of a token. A later access token of its user replaces the one that it has. */
  #find(
    { request, caller }: HubRequest,
    { id, owner }: ConnectionToken,
  ): HubConnection | 'elsewhere' | undefined {
    const own = ownAddress(request);
    if (owner.host !== own.host || owner.port !== own.port) return 'elsewhere';
    const connection = this.#sessions.find(id);
    if (connection !== undefined && caller.expiresAtMs > connection.caller.expiresAtMs)
      connection.caller = caller;
    return connection;
  }

  /** Errors: those of a connection that cannot be opened with the token. */
  #openConnection({ caller, sinceMs }: HubRequest, token: ConnectionToken | undefined): HubConnection {
    const { userId } = this.#scopeOf(caller);
    this.#behaviour.assertMayConnect(caller);
    const now = this.nowMs();
    if (token !== undefined) {
      if (this.#sessions.find(token.id) !== undefined) throw otherTransport();
      const isOld = Math.abs(now - token.issuedAtMs) > this.limits.openMs;
      if (isOld || this.#sessions.wasUsed(token.id)) throw unknownConnection();
    }
    this.#sessions.assertRoom(userId);
    const id = token?.id ?? randomBytes(16).toString('hex');
    const connection = new HubConnection(this, { id, userId, caller, sinceMs });
    this.#sessions.add(connection, now);
    this.#open.inc({ hub: this.#parts.path });
    return connection;
  }

  #openSocket(given: HubRequest, upgrade: Upgrade): FastifyReply {
    const connection = this.#openConnection(
      given,
      given.token === undefined ? undefined : this.#verify(given),
    );
    given.reply.hijack();
    upgrade.socket.once('close', () => connection.onGone());
    this.#sockets.open(given.request.raw, upgrade, (socket) => {
      this.#attach(connection, webSocketTransport(socket, connection, this.limits.closeMs));
    });
    return given.reply;
  }

  #openStream(given: HubRequest, token: ConnectionToken): FastifyReply {
    const connection = this.#openConnection(given, token);
    given.reply.hijack();
    this.#attach(connection, eventStreamTransport(given.reply.raw, connection, this.limits.closeMs));
    return given.reply;
  }

  #poll(given: HubRequest, token: ConnectionToken): FastifyReply {
    const polls = this.#pollsOf(given, token);
    given.reply.hijack();
    polls.poll(given.reply.raw);
    return given.reply;
  }

  #pollsOf(given: HubRequest, token: ConnectionToken): LongPolling {
    const existing = this.#sessions.find(token.id)?.transport ?? this.#sessions.findDraining(token.id);
    if (existing instanceof LongPolling) return existing;
    const connection = this.#openConnection(given, token);
    const polls = new LongPolling(this.limits, () => this.nowMs(), this.#timers);
    this.#attach(connection, polls);
    return polls;
  }

  #attach(connection: HubConnection, transport: HubConnection['transport'] & object): void {
    connection.attach(transport);
    this.#opened.inc({ hub: this.#parts.path, transport: transport.name });
  }

  #scheduleTick(): void {
    this.#cancelTick = this.#timers.after(this.limits.tickMs, () => {
      this.#tick();
      if (!this.#isStopping) this.#scheduleTick();
    });
  }

  #tick(): void {
    const now = this.nowMs();
    for (const connection of this.#sessions.all()) {
      connection.tick(now);
      if (!connection.hasEnded) this.#judge.tick(connection, now);
    }
    this.#judge.judgeDue();
    this.#sessions.prune(now);
  }
}

function otherTransport(): AppError {
  return new AppError('conflict', genericCode('conflict'), 'The connection is in use by another request.');
}

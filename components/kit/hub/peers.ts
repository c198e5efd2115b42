import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type Agent, request as startRequest } from 'node:https';
import { TLSSocket } from 'node:tls';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { peerSpiffeId } from '#kit/http/http.ts';
import { keptConnections } from '#kit/workload/server.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { HubLimits } from './limits.ts';

/** Longest silence of an owner: a held poll, or the pings of an event stream. */
const silenceMs = 40_000;

/** The address at which a request reached this replica, which other replicas reach too. */
export function ownAddress({ raw: { socket } }: FastifyRequest): Endpoint {
  const host = (socket.localAddress ?? '').replace(/^::ffff:/i, '');
  return { host, port: socket.localPort ?? 0 };
}

/**
 * Hands requests of a connection to the replica that owns it, over mutual TLS. Both ends have the same SPIFFE id, so no
 * other service gets them, and what was handed once is not handed again.
 */
export class Peers {
  readonly #workload: Workload | undefined;
  readonly #limit: number;
  readonly #agent: Agent | undefined;
  #handed = 0;

  /** Without a workload every request belongs to this replica or to none. */
  constructor(workload: Workload | undefined, limits: HubLimits) {
    this.#workload = workload;
    this.#agent = workload && keptConnections(workload.id);
    this.#limit = limits.handedRequests;
  }

  /** Errors: not_found/HUB_CONNECTION_UNKNOWN when its owner is gone, unavailable when too many are handed. */
  async hand(request: FastifyRequest, reply: FastifyReply, owner: Endpoint): Promise<FastifyReply> {
    const workload = this.#workload;
    if (workload === undefined || isHanded(request, workload)) throw unknownConnection();
    if (this.#handed >= this.#limit) {
      throw new AppError('unavailable', genericCode('unavailable'), 'Too many requests for other replicas.', {
        retryAfterSeconds: 1,
      });
    }
    this.#handed += 1;
    try {
      const answer = await this.#send(request, reply, { workload, owner });
      if (reply.raw.destroyed) throw unknownConnection();
      reply.hijack();
      reply.raw.writeHead(answer.statusCode ?? 502, keptHeaders(answer.headers, answerHeaders));
      reply.raw.flushHeaders();
      answer.on('error', () => reply.raw.destroy());
      answer.pipe(reply.raw);
      reply.raw.once('close', () => {
        this.#handed -= 1;
      });
      return reply;
    } catch (error) {
      this.#handed -= 1;
      throw error;
    }
  }

  stop(): void {
    this.#agent?.destroy();
  }

  #send(
    request: FastifyRequest,
    reply: FastifyReply,
    { workload, owner }: { readonly workload: Workload; readonly owner: Endpoint },
  ): Promise<IncomingMessage> {
    const { key, cert, ca } = workload.current();
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const outgoing = startRequest(
      {
        ...owner,
        method: request.method,
        path: request.url,
        headers: handedHeaders(request),
        agent: this.#agent,
        key,
        cert,
        ca,
        minVersion: 'TLSv1.3',
        servername: 'chancery.internal',
        timeout: silenceMs,
      },
      resolve,
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('the replica is silent')));
    outgoing.on('error', (cause) => reject(unknownConnection(cause)));
    reply.raw.once('close', () => outgoing.destroy());
    outgoing.end(request.body instanceof Buffer ? request.body : undefined);
    return promise;
  }
}

/** A token that no replica issued for this user, or a connection that has ended; the client negotiates again. */
export function unknownConnection(cause?: unknown): AppError {
  return new AppError('not_found', 'HUB_CONNECTION_UNKNOWN', 'The connection is not known.', { cause });
}

function isHanded(request: FastifyRequest, workload: Workload): boolean {
  return request.raw.socket instanceof TLSSocket && peerSpiffeId(request) === workload.id;
}

const requestHeaders = ['authorization', 'accept', 'content-type', 'traceparent'];
const answerHeaders = ['content-type', 'content-length', 'cache-control', 'x-accel-buffering', 'retry-after'];

function handedHeaders(request: FastifyRequest): Record<string, string> {
  const headers = { ...keptHeaders(request.headers, requestHeaders), 'x-forwarded-for': request.ip };
  if (!(request.body instanceof Buffer)) return headers;
  return { ...headers, 'content-length': String(request.body.length) };
}

function keptHeaders(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
}

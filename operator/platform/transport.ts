import { X509Certificate } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as startRequest } from 'node:https';
import type { PeerCertificate } from 'node:tls';
import type { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import { spiffeIdOf } from '#kit/workload/workload.ts';
import { operatorError } from '../errors.ts';
import { refusalOf, unreachable, unreadable } from './refusals.ts';

const callTimeoutMs = 10_000;
const answerLimitBytes = 4 * 1024 * 1024;
const maxConnections = 8;
/** Fixed SNI name: SVIDs contain no host names, and the SPIFFE id is checked instead. */
const SERVER_NAME = 'workload.chancery.internal';

/** One HTTP exchange with a service. */
export interface ServiceRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** A JSON client of a service of the installation. */
export interface Service {
  /**
   * Sends a request and parses the response.
   *
   * Errors: the service's own kind and code; unavailable/SERVICE_UNREACHABLE; bad_gateway/SERVICE_ANSWER_UNREADABLE;
   * errors of the guard. A failed call that changes something may have been carried out.
   */
  call<T>(request: ServiceRequest, answer: z.ZodType<T>): Promise<T>;
  close(): void;
}

/** Source of the process's certificate, with notifications of its rotation; a Workload implements it. */
interface IdentitySource {
  current(): { readonly key: string; readonly cert: string; readonly ca: string };
  onRotate(callback: () => void): () => void;
}

export interface ServiceOptions {
  /** Name in messages: `the tenant service`. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Expected SPIFFE id of the server. */
  readonly expect: string;
  readonly identity: IdentitySource;
  /** Bearer token of this process. */
  readonly token: () => Promise<string>;
  /**
   * Called before each call that changes something, and again when its connection is established.
   * @returns milliseconds that the call may take
   * @throws NotLeader
   */
  readonly guard: () => number;
}

/**
 * A service over mutual TLS 1.3 with persistent connections. A rotated SVID is used for new connections. The server is
 * verified by its SPIFFE id, never by its host name. A call ends after 10 s, including the retry after a broken persistent
 * connection.
 */
export function connectService(options: ServiceOptions): Service {
  let agent = agentOf(options);
  const endWatch = options.identity.onRotate(() => {
    agent = agentOf(options);
  });
  return {
    call: async (request, answer) => {
      const text = await exchange(options, () => agent, request);
      const parsed = answer.safeParse(parseJson(text));
      if (!parsed.success) throw unreadable(options.name, request, parsed.error);
      return parsed.data;
    },
    close: () => {
      endWatch();
      agent.destroy();
    },
  };
}

function agentOf({ identity, expect }: ServiceOptions): Agent {
  const { key, cert, ca } = identity.current();
  return new Agent({
    keepAlive: true,
    maxSockets: maxConnections,
    // a resumed session would not present the certificate again
    maxCachedSessions: 0,
    key,
    cert,
    ca,
    minVersion: 'TLSv1.3',
    servername: SERVER_NAME,
    checkServerIdentity: (_host, certificate) => judge(certificate, expect),
  });
}

function judge(certificate: PeerCertificate, expect: string): Error | undefined {
  try {
    const id = spiffeIdOf(new X509Certificate(certificate.raw));
    return id === expect ? undefined : new Error(`the server is ${id}, expected ${expect}`);
  } catch (error) {
    return error instanceof Error ? error : new Error('the certificate of the server was refused');
  }
}

/** Returns the body of a successful response. */
async function exchange(
  options: ServiceOptions,
  agent: () => Agent,
  request: ServiceRequest,
): Promise<string> {
  const token = await options.token();
  const guard = request.method === 'GET' ? () => callTimeoutMs : options.guard;
  const fromMs = performance.now();
  for (let attempt = 1; ; attempt += 1) {
    const leftMs = callTimeoutMs - Math.round(performance.now() - fromMs);
    // after all waiting, and before each attempt
    const allowedMs = Math.min(leftMs, guard());
    // the remaining lease time is fractional, but a timeout must be an integer
    const timeoutMs = Math.max(0, Math.floor(allowedMs));
    const sent = send({ options, agent: agent(), request, token, timeoutMs, guard: guard });
    try {
      const { status, text, headers } = await sent.answer;
      if (status >= 200 && status < 300) return text;
      throw refusalOf(options.name, request, { status, body: parseJson(text), headers });
    } catch (error) {
      if (isAppError(error)) throw error;
      request.signal?.throwIfAborted();
      // the service closed a persistent connection that was about to be reused; calls are idempotent, so it is retried
      if (sent.outgoing.reusedSocket && !sent.timeout.aborted && attempt === 1) continue;
      throw unreachable(options, error);
    }
  }
}

interface PendingRequest {
  readonly options: ServiceOptions;
  readonly agent: Agent;
  readonly request: ServiceRequest;
  readonly token: string;
  readonly timeoutMs: number;
  /** Throws when the call is not permitted. */
  readonly guard: () => unknown;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
}

function send({ options, agent, request, token, timeoutMs, guard }: PendingRequest): {
  readonly outgoing: ClientRequest;
  readonly timeout: AbortSignal;
  readonly answer: Promise<Answer>;
} {
  const body = request.body === undefined ? undefined : JSON.stringify(request.body);
  const { promise: answer, resolve, reject } = Promise.withResolvers<Answer>();
  const timeout = AbortSignal.timeout(timeoutMs);
  const outgoing = startRequest(
    {
      agent,
      host: options.host,
      port: options.port,
      method: request.method,
      path: request.path,
      signal: request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]),
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${token}`,
        ...(body !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        }),
      },
    },
    (incoming) => {
      const { statusCode: status = 0, headers } = incoming;
      readText(incoming).then((text) => resolve({ status, text, headers }), reject);
    },
  );
  outgoing.on('error', (error) =>
    reject(timeout.aborted ? new Error(`no answer within ${timeoutMs} ms`) : error),
  );
  whenConnected(outgoing, () => {
    try {
      guard();
      outgoing.end(body);
    } catch (error) {
      reject(error);
      outgoing.destroy();
    }
  });
  return { outgoing, timeout, answer };
}

/** Sends nothing before the connection is established, so that the guard is called after all waiting. */
function whenConnected(outgoing: ClientRequest, action: () => void): void {
  outgoing.once('socket', (socket) => {
    if ('secureConnecting' in socket && socket.secureConnecting === true)
      socket.once('secureConnect', action);
    else action();
  });
}

async function readText(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let lengthBytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    lengthBytes += chunk.length;
    if (lengthBytes > answerLimitBytes) {
      throw operatorError('SERVICE_ANSWER_UNREADABLE', 'the answer is too long');
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

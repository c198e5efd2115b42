import type { IncomingMessage } from 'node:http';
import { type Agent, request as startRequest } from 'node:https';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { currentTraceparent } from '#kit/telemetry/telemetry.ts';
import { keptConnections, readText } from '#kit/workload/server.ts';
import type { Workload } from '#kit/workload/workload.ts';

interface ServiceClientOptions {
  readonly workload: Pick<Workload, 'current'>;
  readonly address: Endpoint;
  /** SPIFFE id that the server must have. */
  readonly expect: string;
  /** Time that a call may take in all; 10 s when absent. */
  readonly timeoutMs?: number;
  /** Largest answer; 4 MiB when absent. */
  readonly answerLimitBytes?: number;
}

interface ServiceRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  /** The token that the call is made with. */
  readonly bearer: string;
  /** JSON. */
  readonly body?: unknown;
}

export interface ServiceAnswer {
  readonly status: number;
  /** JSON; undefined for an empty answer. */
  readonly body: unknown;
  /** Seconds of Retry-After; 0 for none. */
  readonly retryAfterSeconds: number;
}

/** Calls the JSON routes of another service. */
interface ServiceClient {
  /**
   * Sends one request. Every status is an answer.
   * @throws AppError unavailable SERVICE_UNAVAILABLE without an answer, timeout TIMEOUT, bad_gateway BAD_GATEWAY for an
   * answer that is no JSON
   */
  call(request: ServiceRequest): Promise<ServiceAnswer>;
  close(): void;
}

/** A client over mutual TLS 1.3 with the workload's current SVID; the server is verified by its SPIFFE id only. */
export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  const { timeoutMs = 10_000, answerLimitBytes = 4 * 1024 * 1024 } = options;
  const agent = keptConnections(options.expect);
  return {
    async call(request) {
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        const answer = await send(options, agent, { request, signal });
        const text = await readText(answer, answerLimitBytes);
        return {
          status: answer.statusCode ?? 0,
          body: bodyOf(text),
          retryAfterSeconds: retryAfterOf(answer),
        };
      } catch (error) {
        if (error instanceof AppError) throw error;
        throw signal.aborted ? lateAnswer(error) : noAnswer(error);
      }
    },
    close: () => agent.destroy(),
  };
}

interface Sending {
  readonly request: ServiceRequest;
  readonly signal: AbortSignal;
}

function send(
  { workload, address }: ServiceClientOptions,
  agent: Agent,
  { request, signal }: Sending,
): Promise<IncomingMessage> {
  const { method, path, bearer } = request;
  const { key, cert, ca } = workload.current();
  const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
  const traceparent = currentTraceparent();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const outgoing = startRequest(
    {
      ...address,
      method,
      path,
      agent,
      key,
      cert,
      ca,
      signal,
      minVersion: 'TLSv1.3',
      servername: 'chancery.internal',
      headers: {
        authorization: `Bearer ${bearer}`,
        accept: 'application/json',
        ...(traceparent !== undefined && { traceparent }),
        ...(body !== undefined && { 'content-type': 'application/json', 'content-length': body.length }),
      },
    },
    resolve,
  );
  outgoing.on('error', reject);
  outgoing.end(body);
  return promise;
}

function bodyOf(text: string): unknown {
  if (text === '') return undefined;
  try {
    return toValue(scanJson(text));
  } catch (cause) {
    throw new AppError('bad_gateway', genericCode('bad_gateway'), 'A service answered with something else.', {
      cause,
    });
  }
}

function retryAfterOf({ headers }: IncomingMessage): number {
  const seconds = Number(headers['retry-after'] ?? 0);
  return Number.isFinite(seconds) ? seconds : 0;
}

function lateAnswer(cause: unknown): AppError {
  return new AppError('timeout', genericCode('timeout'), 'A service did not answer in time.', { cause });
}

function noAnswer(cause: unknown): AppError {
  return new AppError('unavailable', genericCode('unavailable'), 'A service cannot be reached at present.', {
    cause,
  });
}

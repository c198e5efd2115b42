import { type Dispatcher, Pool } from 'undici';
import { isAppError } from '#core/errors/errors.ts';
import { sleep, type Timing } from '#kit/clock/timing.ts';
import type { Api, ApiRequest } from './api.ts';
import { type ClusterAccess, type ClusterCredentials, isSameConnection } from './credentials.ts';
import { ApiError, isApiError, messageOf, statusReasonOf } from './errors.ts';
import type { KubeMetrics } from './metrics.ts';
import { type Bucket, createBackoff, createBucket, type Rate } from './rate-limit.ts';
import { pathOf } from './resource.ts';

export interface HttpApiOptions {
  readonly credentials: ClusterCredentials;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  /** 50 calls a second with a burst of 100 when absent. */
  readonly rate?: Rate;
}

const maxConnections = 8;
const attemptTimeoutMs = 30_000;
const connectTimeoutMs = 10_000;
const maxBodyBytes = 256 * 1024 * 1024;
/** A longer Retry-After is not waited for inside a call; the caller receives the refusal with its time. */
const maxRetryAfterMs = 60_000;
/** Pod tokens live one hour and are rotated earlier, so credentials are read again after this time. */
const credentialsAgeMs = 60_000;

const methods = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
} as const;

/** Connections to one cluster: a pool for calls, and one connection per watch. */
interface Connections {
  readonly access: ClusterAccess;
  readonly host: string;
  readonly prefix: string;
  readonly calls: Pool;
  readonly watches: Pool;
}

function connect(access: ClusterAccess): Connections {
  const { origin, host, pathname } = new URL(access.server);
  const { ca, cert, key, servername } = access;
  const given = Object.entries({ ca, cert, key, servername }).filter(([, value]) => value !== undefined);
  const tls = { ...Object.fromEntries(given), rejectUnauthorized: access.skipVerify !== true };
  const options: Pool.Options = {
    connect: { ...tls, timeout: connectTimeoutMs },
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 30_000,
  };
  return {
    access,
    host,
    prefix: pathname.replace(/\/$/, ''),
    calls: new Pool(origin, { ...options, connections: maxConnections, maxResponseSize: maxBodyBytes }),
    watches: new Pool(origin, options),
  };
}

/** Calls the guard right before the request is written, because it may have waited for a connection. */
function guardedHandler(
  handler: Dispatcher.DispatchHandler,
  guard: () => unknown,
): Dispatcher.DispatchHandler {
  return {
    onRequestStart: (controller, context) => {
      guard();
      handler.onRequestStart?.(controller, context);
    },
    onResponseStart: (...answer) => handler.onResponseStart?.(...answer),
    onResponseData: (...piece) => handler.onResponseData?.(...piece),
    onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
    onResponseError: (...failure) => handler.onResponseError?.(...failure),
  };
}

/** Dispatcher of a guarded request: a process that was frozen with a queued write does not send it afterwards. */
function guardedDispatcher(guard: ApiRequest['guard'], pool: Pool): Dispatcher {
  if (guard === undefined) return pool;
  return pool.compose((dispatch) => (options, handler) => dispatch(options, guardedHandler(handler, guard)));
}

/** The API server over HTTP: shared connections, client-side rate limit, retries, credential rotation, metrics. */
export class HttpApi implements Api {
  readonly #options: HttpApiOptions;
  readonly #bucket: Bucket;
  readonly #closing = new AbortController();
  #connections: Connections | undefined;
  #readAtMs = 0;
  #reading: Promise<Connections> | undefined;

  constructor(options: HttpApiOptions) {
    this.#options = options;
    this.#bucket = createBucket(options.rate ?? { perSecond: 50, burst: 100 }, options.timing);
  }

  async call(request: ApiRequest): Promise<unknown> {
    return this.#withRetries(request, async () => {
      const body = await this.#attempt(request, (answer) => answer.body.text());
      return parseBody(request, body);
    });
  }

  async watch(request: ApiRequest): Promise<AsyncIterable<Uint8Array>> {
    return this.#withRetries(request, () => this.#attempt(request, async (answer) => answer.body));
  }

  /** Aborts all calls and closes every connection. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the connection to the cluster was closed'));
    const open = this.#connections;
    await Promise.all([open?.calls.destroy(), open?.watches.destroy()]);
  }

  async #withRetries<T>(request: ApiRequest, act: () => Promise<T>): Promise<T> {
    const decide = this.#retryRule(request);
    for (;;) {
      try {
        return await act();
      } catch (error) {
        const waitMs = isApiError(error) ? await decide(error) : undefined;
        if (waitMs === undefined || !isApiError(error)) throw error;
        this.#countRetry(error);
        await sleep(this.#options.timing, waitMs, request.signal);
      }
    }
  }

  /**
   * Decides whether and when a call is retried: after a Retry-After, after a lost read, and once with new credentials.
   * All other errors go to the caller.
   */
  #retryRule(request: ApiRequest): (error: ApiError) => Promise<number | undefined> {
    const { timing } = this.#options;
    const backoff = createBackoff({ firstMs: 100, lastMs: 2_000 }, timing);
    let left = request.retries ?? 5;
    let isRenewed = false;
    return async (error) => {
      if (error.reason === 'Unauthorized' && !isRenewed) {
        isRenewed = true;
        await this.#refreshCredentials().catch(() => undefined);
        return 0;
      }
      left -= 1;
      if (left < 0 || this.#closing.signal.aborted) return undefined;
      return retryDelayMs(error, () => backoff.next(), timing);
    };
  }

  async #attempt<T>(request: ApiRequest, read: (answer: Dispatcher.ResponseData) => Promise<T>): Promise<T> {
    const { timing, metrics } = this.#options;
    const to = await this.#connectionsFor(request);
    if (request.urgent !== true) {
      const from = timing.monotonicMs();
      await this.#bucket.wait(request.signal);
      metrics.client.held.observe(
        { verb: request.verb, host: to.host },
        (timing.monotonicMs() - from) / 1000,
      );
    }
    const timeoutMs = Math.min(request.timeoutMs ?? attemptTimeoutMs, request.guard?.() ?? Infinity);
    const from = timing.monotonicMs();
    let code = '<error>';
    try {
      return await this.#withDeadline(request, timeoutMs, async (signal) => {
        const pool = guardedDispatcher(request.guard, request.verb === 'watch' ? to.watches : to.calls);
        const answer = await pool.request({ ...this.#message(request, to), signal });
        code = String(answer.statusCode);
        if (answer.statusCode >= 400) throw await this.#refusal(request, answer);
        return read(answer);
      });
    } finally {
      const method = methods[request.verb];
      metrics.client.requests.inc({ code, method, host: to.host });
      const tookMs = timing.monotonicMs() - from;
      metrics.client.duration.observe({ verb: request.verb, host: to.host }, tookMs / 1000);
    }
  }

  #message(request: ApiRequest, to: Connections) {
    const query = new URLSearchParams(request.query).toString();
    const headers: Record<string, string> = {
      accept: request.accept ?? 'application/json',
      'user-agent': 'chancery-kube',
    };
    if (to.access.authorization !== undefined) headers['authorization'] = to.access.authorization;
    if (request.body !== undefined) headers['content-type'] = request.contentType ?? 'application/json';
    return {
      method: methods[request.verb],
      path: `${to.prefix}${pathOf(request)}${query === '' ? '' : `?${query}`}`,
      headers,
      body: request.body === undefined ? null : JSON.stringify(request.body),
    };
  }

  async #refusal(request: ApiRequest, answer: Dispatcher.ResponseData): Promise<ApiError> {
    const status = answer.statusCode;
    const body = tryJson(await answer.body.text());
    const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], this.#options.timing.nowMs());
    return new ApiError(statusReasonOf(status, body), request, messageOf(status, body), {
      status,
      retryAfterMs,
    });
  }

  /** Runs one attempt under the caller's signal and a deadline; transport errors become ApiErrors. */
  async #withDeadline<T>(
    request: ApiRequest,
    ms: number,
    act: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = new AbortController();
    const outside = [this.#closing.signal, late.signal];
    if (request.signal !== undefined) outside.push(request.signal);
    const cancel = this.#options.timing.after(ms, () => late.abort(new Error(`no answer within ${ms} ms`)));
    try {
      return await act(AbortSignal.any(outside));
    } catch (cause) {
      request.signal?.throwIfAborted();
      if (isAppError(cause)) throw cause;
      const message = cause instanceof Error ? cause.message : 'the connection failed';
      throw new ApiError('Network', request, message, { cause });
    } finally {
      cancel();
    }
  }

  async #connectionsFor(request: ApiRequest): Promise<Connections> {
    const open = this.#connections;
    const isYoung = this.#options.timing.monotonicMs() - this.#readAtMs < credentialsAgeMs;
    if (open !== undefined && isYoung) return open;
    try {
      return await this.#refreshCredentials();
    } catch (cause) {
      // credentials from a minute ago are probably valid; if not, the API server answers 401
      if (open !== undefined) return open;
      throw new ApiError('Unauthorized', request, 'no credentials could be read', { cause });
    }
  }

  /** Reads credentials once for all waiting callers; replaces connections whose TLS parameters have changed. */
  #refreshCredentials(): Promise<Connections> {
    const read = async () => {
      const access = await this.#options.credentials.read();
      const before = this.#connections;
      this.#readAtMs = this.#options.timing.monotonicMs();
      if (before !== undefined && isSameConnection(before.access, access)) {
        this.#connections = { ...before, access };
      } else {
        this.#connections = connect(access);
        // open calls and watches finish on the old connections
        for (const pool of [before?.calls, before?.watches]) void pool?.close().catch(() => undefined);
      }
      return this.#connections;
    };
    this.#reading ??= read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  #countRetry(error: ApiError): void {
    const code = error.status === 0 ? '<error>' : String(error.status);
    const host = this.#connections?.host ?? '';
    this.#options.metrics.client.retries.inc({ code, verb: error.request.verb, host });
  }
}

/** Milliseconds until a retry; undefined when the call is not retried. */
function retryDelayMs(error: ApiError, nextMs: () => number, timing: Timing): number | undefined {
  if (error.status === 429 || error.status === 503) {
    const waitMs = error.retryAfterMs;
    if (waitMs === undefined || waitMs > maxRetryAfterMs) return undefined;
    // never early, and with jitter
    return waitMs + timing.random() * Math.min(1_000, waitMs / 10);
  }
  const isLostRead = error.reason === 'Network' && ['get', 'list'].includes(error.request.verb);
  return isLostRead ? nextMs() : undefined;
}

/** RFC 9110 10.2.3: seconds, or a date. */
function parseRetryAfter(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = Array.isArray(header) ? header[0] : header;
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parseBody(request: ApiRequest, text: string): unknown {
  const body = tryJson(text);
  if (body === undefined) throw new ApiError('Network', request, 'the body of the answer is not JSON');
  return body;
}

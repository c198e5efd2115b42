import { Pool } from 'undici';
import type { Forwarded } from './upstreams.ts';

interface PageUpstreamOptions {
  /** Its origin, http or https. */
  readonly origin: string;
  readonly connections: number;
  /** Time for the start of an answer, and the longest pause within one. */
  readonly answerTimeoutMs: number;
}

interface PageUpstream {
  readonly upstream: Forwarded;
  close(): Promise<void>;
}

const connectTimeoutMs = 2000;

/**
 * The server of pages that replace the built-in ones. It is no service of the installation: it gets no SVID of the
 * gateway, and a certificate that it shows is judged by its name, as in a browser.
 */
export function createPageUpstream(options: PageUpstreamOptions): PageUpstream {
  const pool = new Pool(options.origin, {
    connections: options.connections,
    connect: { timeout: connectTimeoutMs },
    pipelining: 1,
    headersTimeout: options.answerTimeoutMs,
    bodyTimeout: options.answerTimeoutMs,
    keepAliveTimeout: 4000,
    keepAliveMaxTimeout: 60_000,
  });
  const { host } = new URL(options.origin);
  const target = { pool: () => pool };
  const upstream: Forwarded = {
    size: 1,
    inFlight: 0,
    current: () => target,
    leave: () => undefined,
    outside: {
      requestHeaders: (flat) => pageHeaders(flat, host),
      // HttpOnly cookies of the sign-in are the service's alone.
      answerHeaders: ({ 'set-cookie': _, ...headers }) => headers,
    },
  };
  return { upstream, close: () => pool.destroy() };
}

/** What would let the server of pages act as the person, or as the gateway. */
const withheld = new Set(['authorization', 'cookie', 'x-api-key', 'x-auth-challenge']);

/** Of the headers for a service, those for the server of pages, which has a name of its own. */
function pageHeaders(flat: readonly string[], host: string): string[] {
  const kept: string[] = ['host', host];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = flat[i] ?? '';
    if (name !== 'host' && !withheld.has(name)) kept.push(name, flat[i + 1] ?? '');
  }
  return kept;
}

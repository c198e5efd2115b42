import type { IncomingMessage } from 'node:http';
import type { ClientFacts } from './client-address.ts';

/** Hop-by-hop headers (RFC 9110 7.6.1), and every header with which a client could forge its origin. */
const dropped = new Set([
  'connection',
  'expect',
  'forwarded',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'traceparent',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
  'x-real-ip',
]);

/**
 * The headers for the service, as a flat list: the client's, without hop-by-hop and forwarding headers, plus the
 * gateway's own. Reads the raw list, so repeated headers stay repeated.
 */
export function serviceHeaders(request: IncomingMessage, client: ClientFacts, traceparent: string): string[] {
  const flat = keptHeaders(request.rawHeaders, request.headers.connection);
  flat.push('x-forwarded-for', client.clientAddress);
  flat.push('x-forwarded-proto', client.secure ? 'https' : 'http');
  flat.push('x-forwarded-host', client.host);
  flat.push('traceparent', traceparent);
  return flat;
}

/**
 * The same for a WebSocket handshake, whose own headers are rewritten: names in the client's `Connection` header cannot
 * remove them.
 */
export function handshakeHeaders(
  request: IncomingMessage,
  client: ClientFacts,
  traceparent: string,
): string[] {
  const { headers } = request;
  const flat = ['connection', 'Upgrade', 'upgrade', 'websocket'];
  for (const name of handshakeNames) {
    const value = headers[name];
    if (value !== undefined) flat.push(name, String(value));
  }
  const others = serviceHeaders(request, client, traceparent);
  for (let i = 0; i + 1 < others.length; i += 2) {
    const name = others[i] ?? '';
    if (!name.startsWith('sec-websocket-')) flat.push(name, others[i + 1] ?? '');
  }
  return flat;
}

const handshakeNames = [
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
] as const;

function keptHeaders(raw: readonly string[], connection: string | undefined): string[] {
  const named = namedByConnection(connection);
  const flat: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const lower = name.toLowerCase();
    if (dropped.has(lower) || lower.startsWith('x-forwarded-') || named?.includes(lower)) continue;
    flat.push(lower, raw[i + 1] ?? '');
  }
  return flat;
}

/** Headers that the client's `Connection` header cannot remove. */
const notDroppable = new Set(['authorization', 'content-length', 'content-type', 'host', 'cookie']);

function namedByConnection(connection: string | undefined): string[] | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return connection
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => !notDroppable.has(name));
}

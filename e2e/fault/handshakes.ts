import { handshakeTo } from '../../components/gateway/testing/client.ts';
import { agreement, type RawConnection } from '../../components/gateway/testing/raw-service.ts';

/** A request that is no opening handshake, or that must not be one here. */
export interface BadHandshake {
  readonly name: string;
  /** As latin1. */
  readonly bytes: string;
  /** Status of the gateway's answer. */
  readonly status: number;
}

/** An answer of a service to a handshake that is one. */
export interface ServiceAnswer {
  readonly name: string;
  /** Parts in the order in which they are written, each on its own. */
  parts(connection: RawConnection): readonly string[];
  /** Statuses that the client may get: 101 joins. */
  readonly statuses: readonly number[];
}

export const hub = '/hubs/register/x';

const key = 'dGhlIHNhbXBsZSBub25jZQ==';
const body = 'content-length: 5\r\n\r\nhello';

function raw(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Every one of them is refused before a service hears of it. */
export const badHandshakes: readonly BadHandshake[] = [
  { name: 'no key', bytes: handshakeTo(hub, { 'sec-websocket-key': undefined }), status: 400 },
  { name: 'an empty key', bytes: handshakeTo(hub, { 'sec-websocket-key': '' }), status: 400 },
  { name: 'a short key', bytes: handshakeTo(hub, { 'sec-websocket-key': 'c2hvcnQ=' }), status: 400 },
  { name: 'two keys', bytes: handshakeTo(hub, { 'Sec-WebSocket-KEY': key }), status: 400 },
  { name: 'no version', bytes: handshakeTo(hub, { 'sec-websocket-version': undefined }), status: 426 },
  { name: 'version 8', bytes: handshakeTo(hub, { 'sec-websocket-version': '8' }), status: 426 },
  { name: 'versions 13 and 8', bytes: handshakeTo(hub, { 'sec-websocket-version': '13, 8' }), status: 426 },
  { name: 'a Content-Length of 5', bytes: handshakeTo(hub, { 'content-length': '5' }), status: 400 },
  { name: 'a Content-Length of 0', bytes: handshakeTo(hub, { 'content-length': '0' }), status: 400 },
  { name: 'a body', bytes: handshakeTo(hub).replace(/\r\n$/, body), status: 400 },
  { name: 'chunks', bytes: `${handshakeTo(hub, { 'transfer-encoding': 'chunked' })}0\r\n\r\n`, status: 400 },
  {
    name: 'both a length and chunks',
    bytes: handshakeTo(hub, { 'content-length': '5', 'transfer-encoding': 'chunked' }),
    status: 400,
  },
  {
    name: 'an encoding of its own',
    bytes: handshakeTo(hub, { 'transfer-encoding': 'identity' }),
    status: 400,
  },
  { name: 'two Upgrade headers', bytes: handshakeTo(hub, { UPGRADE: 'websocket' }), status: 400 },
  { name: 'h2c beside WebSocket', bytes: handshakeTo(hub, { Upgrade: 'h2c' }), status: 400 },
  { name: 'a list of protocols', bytes: handshakeTo(hub, { upgrade: 'websocket, h2c' }), status: 400 },
  { name: 'a version of WebSocket', bytes: handshakeTo(hub, { upgrade: 'websocket/13' }), status: 400 },
  { name: 'no Connection', bytes: handshakeTo(hub, { connection: undefined }), status: 400 },
  { name: 'another Connection', bytes: handshakeTo(hub, { connection: 'keep-alive' }), status: 400 },
  { name: 'two Connection headers', bytes: handshakeTo(hub, { CONNECTION: 'Upgrade' }), status: 400 },
  { name: 'an Upgrade on a POST', bytes: handshakeTo(hub, {}, `POST ${hub} HTTP/1.1`), status: 400 },
  { name: 'an Upgrade on a HEAD', bytes: handshakeTo(hub, {}, `HEAD ${hub} HTTP/1.1`), status: 400 },
  { name: 'HTTP/1.0', bytes: handshakeTo(hub, {}, `GET ${hub} HTTP/1.0`), status: 400 },
  { name: 'HTTP/2.0', bytes: handshakeTo(hub, {}, `GET ${hub} HTTP/2.0`), status: 400 },
  { name: 'no Host', bytes: handshakeTo(hub, { host: undefined }), status: 400 },
  { name: 'two Hosts', bytes: handshakeTo(hub, { Host: 'h' }), status: 400 },
  { name: 'a folded header', bytes: handshakeTo(hub, { 'x-a': '1\r\n 2' }), status: 400 },
  { name: 'a bare line feed', bytes: handshakeTo(hub, { 'x-a': '1\nx-b: 2' }), status: 400 },
  { name: 'a bare carriage return', bytes: handshakeTo(hub, { 'x-a': '1\rx-b: 2' }), status: 400 },
  { name: 'line feeds alone', bytes: handshakeTo(hub).replaceAll('\r\n', '\n'), status: 400 },
  { name: 'NUL in a value', bytes: handshakeTo(hub, { 'x-a': 'a\u0000b' }), status: 400 },
  { name: 'NUL in the target', bytes: handshakeTo(`${hub}\u0000`), status: 400 },
  { name: 'a space before a colon', bytes: handshakeTo(hub, { 'content-length ': '5' }), status: 400 },
  { name: 'an oversized head', bytes: handshakeTo(hub, { 'x-a': 'a'.repeat(17_000) }), status: 431 },
  { name: 'a target over the limit', bytes: handshakeTo(`${hub}?${'a'.repeat(17_000)}`), status: 431 },
  { name: 'an internal path', bytes: handshakeTo('/api/internal/inbox'), status: 404 },
  { name: 'a dotted path', bytes: handshakeTo('/hubs/register/../../api/internal/inbox'), status: 404 },
  { name: 'an encoded path', bytes: handshakeTo('/hubs/register/%2e%2e/%2e%2e/openapi.json'), status: 404 },
  { name: 'an absolute target', bytes: handshakeTo('http://h/api/internal/inbox'), status: 404 },
];

const length = 'content-length: 2\r\n\r\nno';
const plain = (status: string, ...headers: readonly string[]) => ({
  name: status,
  parts: () => [[`HTTP/1.1 ${status}`, ...headers, length].join('\r\n')],
  statuses: [Number(status.slice(0, 3))],
});
const switched = (name: string, changes: Readonly<Record<string, string | undefined>>): ServiceAnswer => ({
  name,
  parts: (connection) => [agreement(connection, changes)],
  statuses: [502],
});

/** None of them may let a byte past the gateway, but those that are an agreement to WebSocket. */
export const serviceAnswers: readonly ServiceAnswer[] = [
  plain('400 Bad Request'),
  plain('401 Unauthorized', 'www-authenticate: Bearer'),
  plain('404 Not Found', 'connection: keep-alive'),
  plain('426 Upgrade Required', 'sec-websocket-version: 8'),
  plain('500 Internal Server Error'),
  plain('200 OK'),
  { name: '204 without a body', parts: () => [raw('HTTP/1.1 204 No Content')], statuses: [204] },
  {
    name: '200 in chunks',
    parts: () => ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n', '0\r\n\r\n'],
    statuses: [200],
  },
  { name: '200 without an end', parts: () => ['HTTP/1.1 200 OK\r\n\r\nno'], statuses: [504] },
  {
    name: '404 with a request behind it',
    parts: () => [`HTTP/1.1 404 Not Found\r\n${length}${raw('HTTP/1.1 200 OK')}`],
    statuses: [404, 502],
  },
  {
    name: '100 and then 404',
    parts: () => [raw('HTTP/1.1 100 Continue'), `HTTP/1.1 404 Not Found\r\n${length}`],
    statuses: [404],
  },
  { name: '103 without an end', parts: () => [raw('HTTP/1.1 103 Early Hints', 'link: x')], statuses: [504] },
  { name: 'nothing', parts: () => [], statuses: [504] },
  { name: 'half a 101', parts: (connection) => [agreement(connection).slice(0, 40)], statuses: [504] },
  { name: 'no HTTP', parts: () => ['SSH-2.0-OpenSSH\r\n\r\n'], statuses: [502] },
  { name: 'another version', parts: () => [raw('HTTP/3.0 101 Switching Protocols')], statuses: [502] },
  {
    name: 'a line feed in the head of a 101',
    parts: (connection) => [agreement(connection, { 'x-a': 'b\nx-c: d' })],
    statuses: [502],
  },
  {
    name: 'a 101 with an oversized head',
    parts: (connection) => [agreement(connection, { 'x-a': 'a'.repeat(17_000) })],
    statuses: [502],
  },
  switched('a 101 with a wrong accept', { 'sec-websocket-accept': 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=' }),
  switched('a 101 without an accept', { 'sec-websocket-accept': undefined }),
  switched('a 101 with the key as accept', { 'sec-websocket-accept': key }),
  switched('a 101 to h2c', { upgrade: 'h2c' }),
  switched('a 101 without Upgrade', { upgrade: undefined }),
  switched('a 101 without Connection', { connection: undefined }),
  switched('a 101 of a subprotocol that was not requested', { 'sec-websocket-protocol': 'admin' }),
  switched('a 101 of an extension that was not requested', { 'sec-websocket-extensions': 'x-tunnel' }),
  { name: 'a 101', parts: (connection) => [agreement(connection)], statuses: [101] },
  {
    name: 'a 101 in upper case',
    parts: (connection) => [agreement(connection, { upgrade: 'WEBSOCKET', connection: 'UPGRADE' })],
    statuses: [101],
  },
  { name: 'a 101 byte by byte', parts: (connection) => [...agreement(connection)], statuses: [101] },
];

import { sampleKey } from '#kit/testing/raw-client.ts';
import { agreement, type RawConnection } from './raw-service.ts';

/** An answer of a service to a valid handshake. */
export interface ServiceAnswer {
  readonly name: string;
  /** Parts in the order in which they are written, each separately. */
  parts(connection: RawConnection): readonly string[];
  /** Statuses that the client may get: 101 joins. */
  readonly statuses: readonly number[];
}

function raw(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`;
}

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

/** No answer may let a byte past the gateway, except those that agree to WebSocket. */
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
  switched('a 101 with the key as accept', { 'sec-websocket-accept': sampleKey }),
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

import { handshakeTo, sampleKey } from './raw-client.ts';

/** A request that is no opening handshake, or that must not be one here. */
export interface BadHandshake {
  readonly name: string;
  /** As latin1. */
  readonly bytes: string;
  /** Status of the gateway's answer when the path upgrades. */
  readonly status: number;
}

const body = 'content-length: 5\r\n\r\nhello';

/** Handshakes to a path that upgrades, or to another one. Each is refused before it reaches a service. */
export function badHandshakes(hub: string): readonly BadHandshake[] {
  return [
    { name: 'no key', bytes: handshakeTo(hub, { 'sec-websocket-key': undefined }), status: 400 },
    { name: 'an empty key', bytes: handshakeTo(hub, { 'sec-websocket-key': '' }), status: 400 },
    { name: 'a short key', bytes: handshakeTo(hub, { 'sec-websocket-key': 'c2hvcnQ=' }), status: 400 },
    { name: 'two keys', bytes: handshakeTo(hub, { 'Sec-WebSocket-KEY': sampleKey }), status: 400 },
    { name: 'no version', bytes: handshakeTo(hub, { 'sec-websocket-version': undefined }), status: 426 },
    { name: 'version 8', bytes: handshakeTo(hub, { 'sec-websocket-version': '8' }), status: 426 },
    { name: 'versions 13 and 8', bytes: handshakeTo(hub, { 'sec-websocket-version': '13, 8' }), status: 426 },
    { name: 'a Content-Length of 5', bytes: handshakeTo(hub, { 'content-length': '5' }), status: 400 },
    { name: 'a Content-Length of 0', bytes: handshakeTo(hub, { 'content-length': '0' }), status: 400 },
    { name: 'a body', bytes: handshakeTo(hub).replace(/\r\n$/, body), status: 400 },
    {
      name: 'chunks',
      bytes: `${handshakeTo(hub, { 'transfer-encoding': 'chunked' })}0\r\n\r\n`,
      status: 400,
    },
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
    { name: 'an Upgrade on a HEAD', bytes: handshakeTo(hub, {}, `HEAD ${hub} HTTP/1.1`), status: 405 },
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
}

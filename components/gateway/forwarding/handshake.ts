import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** The parts of a request that determine whether it is an opening handshake. */
type HandshakeRequest = Pick<IncomingMessage, 'method' | 'httpVersion' | 'headers' | 'rawHeaders'>;

/** Why a request is not an opening handshake. */
export interface HandshakeFault {
  readonly code: 'INVALID_REQUEST' | 'UPGRADE_REQUIRED';
  readonly detail: string;
}

/** Suffix of the key in the digest of `Sec-WebSocket-Accept` (RFC 6455 1.3). */
const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const KEY_BYTES = 16;

/** Whether a request names WebSocket in its `Upgrade` header, well-formed or not. */
export function asksForWebSocket({ upgrade }: IncomingHttpHeaders): boolean {
  return upgrade?.toLowerCase().includes('websocket') === true;
}

/**
 * Judges an opening handshake (RFC 6455 4.2.1); undefined when it is valid. Stricter than the RFC where two servers
 * could interpret it differently: one `Upgrade` with one protocol, one `Connection`, and no header that announces a
 * body, whatever its length.
 */
export function judgeHandshake(request: HandshakeRequest): HandshakeFault | undefined {
  const { headers, rawHeaders } = request;
  const one = (name: string) => onlyValue(rawHeaders, name);
  if (request.method !== 'GET') return malformed('its method is not GET');
  if (request.httpVersion !== '1.1') return malformed('its version is not HTTP/1.1');
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
    return malformed('it announces a body');
  if (one('upgrade')?.toLowerCase() !== 'websocket') return malformed('its Upgrade is not websocket alone');
  if (!tokensOf(one('connection')).includes('upgrade'))
    return malformed('its Connection does not name upgrade');
  if (!isKey(one('sec-websocket-key'))) return malformed('its Sec-WebSocket-Key is not 16 bytes of base64');
  if (one('sec-websocket-version') !== '13')
    return { code: 'UPGRADE_REQUIRED', detail: 'The WebSocket version must be 13.' };
  return undefined;
}

function malformed(reason: string): HandshakeFault {
  return { code: 'INVALID_REQUEST', detail: `The request is no WebSocket handshake: ${reason}.` };
}

/**
 * Judges an answer of status 101 against its handshake (RFC 6455 4.1, "Client Requirements"); returns the reason not to
 * upgrade, or undefined.
 */
export function judgeSwitch(answer: IncomingHttpHeaders, asked: IncomingHttpHeaders): string | undefined {
  if (answer.upgrade?.toLowerCase() !== 'websocket') return 'its Upgrade is not websocket';
  if (!tokensOf(answer.connection).includes('upgrade')) return 'its Connection does not name upgrade';
  if (answer['sec-websocket-accept'] !== acceptOf(asked['sec-websocket-key'] ?? ''))
    return 'its Sec-WebSocket-Accept does not belong to the key';
  const protocol = answer['sec-websocket-protocol'];
  if (protocol !== undefined && !itemsOf(asked['sec-websocket-protocol']).includes(protocol))
    return 'its subprotocol was not requested';
  const extensions = extensionNames(asked['sec-websocket-extensions']);
  if (!extensionNames(answer['sec-websocket-extensions']).every((name) => extensions.includes(name)))
    return 'one of its extensions was not requested';
  return undefined;
}

/** `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key` (RFC 6455 4.2.2). */
export function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}${ACCEPT_SUFFIX}`).digest('base64');
}

/** Headers of an answer of status 101, as a flat list: only those of the handshake. */
export function switchHeaders(answer: IncomingHttpHeaders): string[] {
  const flat = ['connection', 'Upgrade', 'upgrade', 'websocket'];
  for (const name of ['sec-websocket-accept', 'sec-websocket-protocol', 'sec-websocket-extensions']) {
    const value = answer[name];
    if (value !== undefined) flat.push(name, String(value));
  }
  return flat;
}

/** The value of a header that occurs exactly once. */
function onlyValue(rawHeaders: readonly string[], name: string): string | undefined {
  const values: (string | undefined)[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1]);
  }
  return values.length === 1 ? values[0] : undefined;
}

function isKey(text: string | undefined): boolean {
  if (text === undefined) return false;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === KEY_BYTES && bytes.toString('base64') === text;
}

/** Items of a comma-separated list. */
function itemsOf(list: string | undefined): string[] {
  return (list ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function tokensOf(list: string | undefined): string[] {
  return itemsOf(list?.toLowerCase());
}

/** Names in a `Sec-WebSocket-Extensions` list, without their parameters. */
function extensionNames(list: string | undefined): string[] {
  return tokensOf(list).map((item) => item.split(';', 1)[0]?.trim() ?? '');
}

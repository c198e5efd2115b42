import { describe, expect, it } from 'vitest';
import { acceptOf, asksForWebSocket, judgeHandshake, judgeSwitch, switchHeaders } from './handshake.ts';

const key = 'dGhlIHNhbXBsZSBub25jZQ==';

const sound = [
  ['host', 'h'],
  ['connection', 'keep-alive, Upgrade'],
  ['upgrade', 'WebSocket'],
  ['sec-websocket-key', key],
  ['sec-websocket-version', '13'],
] as const;

type Pairs = readonly (readonly [string, string])[];

function requestOf(pairs: Pairs, over: { method?: string; httpVersion?: string } = {}) {
  return {
    method: 'GET',
    httpVersion: '1.1',
    headers: Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value])),
    rawHeaders: pairs.flat(),
    ...over,
  };
}

const without = (name: string): Pairs => sound.filter(([each]) => each !== name);
const withValue = (name: string, value: string): Pairs => [...without(name), [name, value]];

describe('an opening handshake', () => {
  it('is accepted with names and values in any case', () => {
    expect(judgeHandshake(requestOf(sound))).toBeUndefined();
    const upper = sound.map(([name, value]) => [name.toUpperCase(), value] as const);
    expect(judgeHandshake({ ...requestOf(sound), rawHeaders: upper.flat() })).toBeUndefined();
  });

  it.each([
    ['another method', requestOf(sound, { method: 'POST' })],
    ['HTTP/1.0', requestOf(sound, { httpVersion: '1.0' })],
    ['a length', requestOf([...sound, ['content-length', '0']])],
    ['chunks', requestOf([...sound, ['transfer-encoding', 'chunked']])],
    ['another protocol', requestOf(withValue('upgrade', 'h2c'))],
    ['two protocols', requestOf(withValue('upgrade', 'websocket, h2c'))],
    ['two Upgrade headers', requestOf([...sound, ['upgrade', 'websocket']])],
    ['no Connection', requestOf(without('connection'))],
    ['a Connection of another option', requestOf(withValue('connection', 'keep-alive, upgraded'))],
    ['two Connection headers', requestOf([...sound, ['connection', 'close']])],
    ['no key', requestOf(without('sec-websocket-key'))],
    ['two keys', requestOf([...sound, ['sec-websocket-key', key]])],
    ['a key of 15 bytes', requestOf(withValue('sec-websocket-key', 'MTIzNDU2Nzg5MDEyMzQ1'))],
    ['a key of 17 bytes', requestOf(withValue('sec-websocket-key', 'MTIzNDU2Nzg5MDEyMzQ1Njc='))],
    ['a key without padding', requestOf(withValue('sec-websocket-key', key.slice(0, -2)))],
    ['a key with trailing bits', requestOf(withValue('sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZR=='))],
    ['a key in base64url', requestOf(withValue('sec-websocket-key', '____________________-w=='))],
  ])('is refused with %s', (_name, request) => {
    expect(judgeHandshake(request)?.code).toBe('INVALID_REQUEST');
  });

  it.each([
    ['none', requestOf(without('sec-websocket-version'))],
    ['8', requestOf(withValue('sec-websocket-version', '8'))],
    ['13 twice', requestOf([...sound, ['sec-websocket-version', '13']])],
    ['a list', requestOf(withValue('sec-websocket-version', '13, 8'))],
  ])('gets the supported version when it names %s', (_name, request) => {
    expect(judgeHandshake(request)?.code).toBe('UPGRADE_REQUIRED');
  });

  it('is recognised wherever WebSocket is named', () => {
    expect(asksForWebSocket({ upgrade: 'h2c, WEBSOCKET' })).toBe(true);
    expect(asksForWebSocket({ upgrade: 'h2c' })).toBe(false);
    expect(asksForWebSocket({})).toBe(false);
  });
});

describe('an agreement to WebSocket', () => {
  const asked = {
    'sec-websocket-key': key,
    'sec-websocket-protocol': 'chat, superchat',
    'sec-websocket-extensions': 'permessage-deflate; client_max_window_bits, x-other',
  };
  const agreed = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-accept': acceptOf(key) };

  it('uses the digest of RFC 6455 1.3', () => {
    expect(acceptOf(key)).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  });

  it.each([
    ['nothing more', {}],
    ['a requested subprotocol', { 'sec-websocket-protocol': 'superchat' }],
    [
      'a requested extension',
      { 'sec-websocket-extensions': 'permessage-deflate; server_no_context_takeover' },
    ],
  ])('is accepted with %s', (_name, more) => {
    expect(judgeSwitch({ ...agreed, ...more }, asked)).toBeUndefined();
  });

  it.each([
    ['no Upgrade', { upgrade: undefined }],
    ['another Upgrade', { upgrade: 'h2c' }],
    ['two Upgrades', { upgrade: 'websocket, websocket' }],
    ['no Connection', { connection: undefined }],
    ['another Connection', { connection: 'keep-alive' }],
    ['no accept', { 'sec-websocket-accept': undefined }],
    ['the accept of another key', { 'sec-websocket-accept': acceptOf('MTIzNDU2Nzg5MDEyMzQ1Ng==') }],
    ['the accept twice', { 'sec-websocket-accept': `${acceptOf(key)}, ${acceptOf(key)}` }],
    ['a subprotocol that was not requested', { 'sec-websocket-protocol': 'admin' }],
    ['two subprotocols', { 'sec-websocket-protocol': 'chat, superchat' }],
    ['an extension that was not requested', { 'sec-websocket-extensions': 'permessage-deflate, x-new' }],
  ])('is refused with %s', (_name, change) => {
    expect(judgeSwitch({ ...agreed, ...change }, asked)).toBeDefined();
  });

  it('allows no extension or subprotocol that was not requested', () => {
    const bare = { 'sec-websocket-key': key };
    expect(judgeSwitch({ ...agreed, 'sec-websocket-protocol': 'chat' }, bare)).toBeDefined();
    expect(judgeSwitch({ ...agreed, 'sec-websocket-extensions': 'x' }, bare)).toBeDefined();
  });

  it('forwards only the headers of the handshake', () => {
    const answer = { ...agreed, 'content-length': '5', server: 'leaky', 'sec-websocket-protocol': 'chat' };
    expect(switchHeaders(answer)).toEqual([
      'connection',
      'Upgrade',
      'upgrade',
      'websocket',
      'sec-websocket-accept',
      acceptOf(key),
      'sec-websocket-protocol',
      'chat',
    ]);
  });
});

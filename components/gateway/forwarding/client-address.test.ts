import { describe, expect, it } from 'vitest';
import { type ClientTrail, createClientReader } from './client-address.ts';

function request(remoteAddress: string, headers: Record<string, string>): ClientTrail {
  return { socket: { remoteAddress }, headers: { host: 'direct.example', ...headers } };
}

describe('client address', () => {
  const read = createClientReader(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7']);

  it.each([
    ['203.0.113.5', '6.6.6.6', '203.0.113.5'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.5', '203.0.113.5'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.5, 10.2.3.4', '203.0.113.5'],
    ['10.0.0.1', '203.0.113.5, 192.0.2.7, 10.2.3.4', '203.0.113.5'],
    ['10.0.0.1', '10.9.9.9, 10.2.3.4', '10.9.9.9'],
    ['10.0.0.1', 'unknown, garbage', '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['::ffff:10.0.0.1', '::ffff:203.0.113.5', '203.0.113.5'],
    ['2001:db8::1', '2001:4860::8888', '2001:4860::8888'],
    ['2001:db9::1', '2001:4860::8888', '2001:db9::1'],
    ['192.0.2.8', '6.6.6.6', '192.0.2.8'],
  ])('from %s with %j is %s', (direct, forwarded, expected) => {
    expect(read(request(direct, { 'x-forwarded-for': forwarded })).clientAddress).toBe(expected);
  });

  it('uses scheme and host of the nearest trusted proxy only', () => {
    const headers = { 'x-forwarded-proto': 'http, HTTPS', 'x-forwarded-host': 'evil.example, api.example' };
    expect(read(request('10.0.0.1', headers))).toMatchObject({ secure: true, host: 'api.example' });
    expect(read(request('203.0.113.5', headers))).toMatchObject({ secure: false, host: 'direct.example' });
    expect(read(request('10.0.0.1', { 'x-forwarded-host': 'a b' })).host).toBe('direct.example');
    expect(createClientReader([])(request('10.0.0.1', headers))).toMatchObject({
      secure: false,
      host: 'direct.example',
    });
  });
});

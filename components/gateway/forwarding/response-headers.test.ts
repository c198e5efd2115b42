import { describe, expect, it } from 'vitest';
import { securityHeaders } from '../answers/security-headers.ts';
import { clientHeaders } from './response-headers.ts';

const own = "default-src 'none'; script-src 'self'";

function headersOf(headers: Readonly<Record<string, string>>, path: string): ReadonlyMap<string, string> {
  const flat = clientHeaders(headers, false, path);
  const pairs = flat.flatMap((name, position) =>
    position % 2 === 0 ? [[name, flat[position + 1] ?? '']] : [],
  );
  expect(new Set(pairs.map(([name]) => name)).size).toBe(pairs.length);
  return new Map(pairs as [string, string][]);
}

const ours = (name: string) => securityHeaders[securityHeaders.indexOf(name) + 1];

describe('security headers of an answer', () => {
  it.each(['/auth/login', '/app', '/app/', '/wallet/'])('a page at %s has its own policy', (path) => {
    expect(headersOf({ 'content-security-policy': own }, path).get('content-security-policy')).toBe(own);
  });

  it.each(['/api/auth/login', '/authx/login', '/application', '/api/app/', '/wallets/'])(
    '%s has not',
    (path) => {
      const sent = headersOf({ 'content-security-policy': own }, path).get('content-security-policy');
      expect(sent).toBe(ours('content-security-policy'));
    },
  );

  it('a stricter referrer policy passes everywhere, a weaker one nowhere', () => {
    const sent = (policy: string) =>
      headersOf({ 'referrer-policy': policy }, '/api/x').get('referrer-policy');
    expect(sent('no-referrer')).toBe('no-referrer');
    expect(sent('unsafe-url')).toBe(ours('referrer-policy'));
  });

  it('nothing else can be replaced', () => {
    const sent = headersOf({ 'x-frame-options': 'ALLOWALL', 'x-content-type-options': 'x' }, '/auth/login');
    expect([sent.get('x-frame-options'), sent.get('x-content-type-options')]).toEqual(['DENY', 'nosniff']);
  });
});

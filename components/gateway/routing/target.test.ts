import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judgeTarget } from './target.ts';

const internal = [
  '/api/internal',
  '/api/internal/',
  '/api/internal/service-auth/token',
  '/API/Internal/service-auth/token',
  '/api//internal/x',
  '//api/internal/x',
  '/api/./internal/x',
  '/./api/internal/x',
  '/api/registers/../internal/x',
  '/api/internal/../internal/x',
  '/api/internal/../registers',
  '/api/%69nternal/x',
  '/api/%69%6E%74%65%72%6e%61%6c/x',
  '/api%2finternal%2fx',
  '/api%2Finternal/x',
  '/api/internal%2fx',
  '/%61pi/internal/x',
  '/api/%2e/internal/x',
  '/api/x/%2e%2e/internal/x',
  '/api/%252e%252e/api/internal',
  '/api/%2569nternal/x',
  '/api/%25252569nternal/x',
  '/api\\internal\\x',
  '/api%5cinternal%5cx',
  '/api/%c0%afinternal/x',
  '/api%c0%afinternal/x',
  '/api/%u0069nternal/x',
  '/api/internal;x=1/y',
  '/api/internal%3bx/y',
  '/api;v=1/internal/x',
  '/api/internal%00/x',
  '/api/internal%09/x',
  '/api/internal%20/x',
  '/api/%EF%BD%89nternal/x',
  '/api%EF%BC%8Finternal/x',
  '/api/internal?x=1',
  'http://other.example/api/internal/x',
  'HTTP://other.example//api/%69nternal',
  '/api/tenant/internal/x',
  '/api/v1/internal/x',
  '/api/v1/wallets/w1abc/persona/encrypt',
  '/api/v1/wallets/w1abc/PERSONA/decrypt',
  '/api/v1/wallets/w1abc//persona/decrypt',
  '/metrics',
  '/Metrics/',
  '/readyz',
  '/%72eadyz',
];

describe('judgeTarget', () => {
  it.each(internal)('denies %s', (target) => {
    expect(judgeTarget(target).kind).toBe('denied');
  });

  it.each([
    ['/api/registers', 'clean'],
    ['/api/registers/', 'clean'],
    ['/api/registers?page=1&x=/api/internal', 'clean'],
    ['/.well-known/jwks.json', 'clean'],
    ['/api/organizations/by-subdomain/a%20b', 'clean'],
    ['/api/organizations/by-subdomain/%C3%A9', 'clean'],
    ['http://h/api/registers?x=1', 'clean'],
    ['/api/metrics/dockets', 'clean'],
    ['/api/v1/wallets/w1abc/access', 'clean'],
    ['/me/persona', 'clean'],
    ['/api/internals', 'clean'],
    ['//api/registers', 'ambiguous'],
    ['/api/registers/../wallets', 'ambiguous'],
    ['/api/registers/%2e%2e/wallets', 'ambiguous'],
    ['/api/registers/a%2fb', 'ambiguous'],
    ['/api/registers/a%5Cb', 'ambiguous'],
    ['/api/registers/a%25b', 'ambiguous'],
    ['/api/registers/a;b', 'ambiguous'],
    ['/api/registers/%zz', 'malformed'],
    ['/api/registers/%ff', 'malformed'],
    ['/api/registers/%00', 'malformed'],
    ['/api/registers#x', 'malformed'],
    ['*', 'malformed'],
    ['ftp://h/x', 'malformed'],
    ['', 'malformed'],
  ])('classifies %s as %s', (target, kind) => {
    expect(judgeTarget(target).kind).toBe(kind);
  });

  it('returns path and query of a clean target', () => {
    expect(judgeTarget('http://h.example/api/registers?a=%2f')).toEqual({
      kind: 'clean',
      path: '/api/registers',
      search: '?a=%2f',
    });
  });

  it('never accepts a disguised internal path', () => {
    const letter = (text: string) =>
      fc.constantFrom(
        text,
        text.toUpperCase(),
        `%${text.charCodeAt(0).toString(16)}`,
        `%25${text.charCodeAt(0).toString(16)}`,
        `%u00${text.charCodeAt(0).toString(16)}`,
      );
    const slash = fc.constantFrom('/', '//', '%2f', '%2F', '\\', '%5c', '/./', '/x/../', '%252f', '/%2e/');
    const disguised = fc
      .tuple(
        slash,
        ...[...'api'].map(letter),
        slash,
        ...[...'internal'].map(letter),
        slash,
        fc.constantFrom('', 'x'),
      )
      .map((parts) => `/${parts.join('')}`);
    fc.assert(
      fc.property(disguised, (target) => {
        expect(judgeTarget(target).kind).toBe('denied');
      }),
      { numRuns: 2000 },
    );
  });

  it('classifies any text without throwing, and a clean path is never internal after one decoding', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
        const target = judgeTarget(`/api/${text}`);
        if (target.kind === 'clean')
          expect(decodeURIComponent(target.path).toLowerCase()).not.toMatch(/^\/api\/internal(\/|$)/);
      }),
      { numRuns: 2000 },
    );
  });
});

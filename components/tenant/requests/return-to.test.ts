import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judgeDestination, returnToHosts } from './return-to.ts';

const baseUrl = 'https://ledger.example.org';
const hosts = ['app.example.com', '*.city.example', 'dev.example:8443', 'localhost:3000'];
const judge = (asked: string) => judgeDestination(asked, { baseUrl, hosts });

describe('destinations of a sign-in', () => {
  it.each([
    ['/app/', '/app/'],
    ['/wallet/enrol?session=1', '/wallet/enrol?session=1'],
    ['app/', '/app/'],
    ['https://ledger.example.org/app/?x=1#token=1', '/app/?x=1'],
  ])('%s is a path of this origin', (asked, url) => {
    expect(judge(asked)).toEqual({ url, isForeign: false });
  });

  it.each([
    'https://app.example.com/back?state=1',
    'https://planning.city.example/',
    'https://a.b.city.example/',
    'https://dev.example:8443/x',
    'http://localhost:3000/callback',
    'HTTPS://APP.EXAMPLE.COM/',
  ])('%s is of an allowed host', (asked) => {
    expect(judge(asked)).toMatchObject({ isForeign: true });
  });

  it.each([
    '//evil.example/',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    'https:evil.example',
    'https:/evil.example',
    'https:///evil.example',
    'https://evil.example/',
    'https://app.example.com@evil.example/',
    'https://user@app.example.com/',
    'https://app.example.com.evil.example/',
    'https://evilapp.example.com/',
    'https://city.example/',
    'https://evilcity.example/',
    'https://dev.example/',
    'https://dev.example:9443/',
    'http://app.example.com/',
    'http://localhost:3001/',
    'http://127.0.0.1:3000/',
    'javascript:alert(1)',
    'data:text/html,x',
    'ftp://app.example.com/',
    'https://app.example.com\u0000/',
    'https://app.example.com\n/',
    ' /app/',
    '/./\\/evil.example',
    '/..//evil.example',
    'https://ledger.example.org//evil.example',
  ])('%j is refused', (asked) => {
    expect(judge(asked)).toBeUndefined();
  });

  it('what is allowed leads a browser to this origin or an allowed host, whatever is asked', () => {
    const parts = [
      '/',
      '\\',
      '//',
      ':',
      '@',
      '?',
      '#',
      'https:',
      'http:',
      'javascript:',
      'app.example.com',
      'evil.example',
      '.',
      '..',
      '\t',
      '%2f',
      '*',
      'localhost:3000',
    ];
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constantFrom(...parts), fc.string({ maxLength: 3 })), { maxLength: 8 }),
        (texts) => {
          const found = judge(texts.join(''));
          if (found === undefined) return;
          const { origin } = new URL(found.url, `${baseUrl}/auth/login`);
          expect([
            baseUrl,
            'https://app.example.com',
            'http://localhost:3000',
            'https://localhost:3000',
          ]).toContain(origin);
        },
      ),
      { numRuns: 20_000 },
    );
  });

  it('the setting names hosts, not addresses', () => {
    expect(returnToHosts.parse(' App.Example.com , *.city.example')).toEqual([
      'app.example.com',
      '*.city.example',
    ]);
    expect(returnToHosts.parse('')).toEqual([]);
    for (const wrong of ['https://app.example.com', '*', 'a b', '*.*.example', 'app.example.com/x']) {
      expect(returnToHosts.safeParse(wrong).success, wrong).toBe(false);
    }
  });
});

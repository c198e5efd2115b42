import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestTenant, type TestTenant } from '../tenant.fixture.ts';
import { PAGE_FILES, PAGES } from './files.ts';

describe('pages', () => {
  let tenant: TestTenant;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_pages', {
      Auth__ReturnToAllowlist__Hosts: 'app.example.com',
    });
  });
  afterAll(() => tenant.stop());

  const get = (url: string, headers = {}) => tenant.app.inject({ method: 'GET', url, headers });

  it.each(Object.keys(PAGES))('%s loads nothing from elsewhere and runs no inline script', async (path) => {
    const page = await get(path);
    expect(page.statusCode).toBe(200);
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringContaining("default-src 'none'; script-src 'self'"),
      'referrer-policy': 'no-referrer',
    });
    const sources = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = '']) => url);
    expect(sources.filter((url) => !url.startsWith('/'))).toEqual([]);
    expect(page.body).not.toMatch(/<script(?![^>]*src=)|\son[a-z]+=|style="/);
    for (const url of sources.filter((one) => one.startsWith('/auth/files/'))) {
      expect((await get(url)).statusCode, url).toBe(200);
    }
  });

  it('every field has a label, and every page a language, a heading and a place for messages', () => {
    for (const { text } of Object.values(PAGES)) {
      const fields = [...text.matchAll(/<(?:input|select)\b[^>]*\bid="([^"]+)"/g)].map(([, id]) => id);
      expect(fields.filter((id) => !text.includes(`for="${id}"`))).toEqual([]);
      expect(text).toMatch(/<html lang="en">[\s\S]*<h1[\s\S]*role="status" aria-live="polite"/);
    }
  });

  it('every file of the folder is served', () => {
    const files = readdirSync(new URL('./files/', import.meta.url)).filter((name) => !name.endsWith('.html'));
    expect([...PAGE_FILES.keys()].toSorted()).toEqual(files.toSorted());
  });

  it('a file that the browser has is not sent again', async () => {
    const { etag } = (await get('/auth/files/page.js')).headers;
    const again = await get('/auth/files/page.js', { 'if-none-match': etag });
    expect([again.statusCode, again.body]).toEqual([304, '']);
  });

  it('the page asks whether a sign-in may lead to an address', async () => {
    const ask = async (url: string) =>
      (await get(`/api/auth/return-to?url=${encodeURIComponent(url)}`)).json();
    expect(await ask('/app/')).toEqual({ allowed: true, url: '/app/', foreign: false });
    expect(await ask('https://app.example.com/x')).toMatchObject({ allowed: true, foreign: true });
    expect(await ask('//evil.example')).toEqual({ allowed: false });
  });
});

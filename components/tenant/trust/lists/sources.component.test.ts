import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bearer } from '../../tenant.fixture.ts';
import { boundary, formBody, outcome, startListTenant } from './tenant-lists.fixture.ts';

const base = '/api/v1/trust/trustlists';
const mebibyte = 1_048_576;

let the: Awaited<ReturnType<typeof startListTenant>>;

beforeAll(async () => {
  the = await startListTenant('tenant_trust_sources');
});
afterAll(() => the.stop());
beforeEach(() => the.clear());

describe('uploads', () => {
  it('take 10 MiB and not one byte more', { timeout: 60_000 }, async () => {
    const most = await the.upload(Buffer.alloc(10 * mebibyte, 0x20), the.pinned);
    expect(outcome(most)).toEqual([400, 'TRUSTLIST_MALFORMED']);
    const more = await the.upload(Buffer.alloc(10 * mebibyte + 1, 0x20), the.pinned);
    expect(outcome(more)).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });

  it.each([
    ['no file', () => formBody({ trustListId: 'a' }, undefined)],
    ['a file of another name', () => formBody({ trustListId: 'a' }, the.listOf(), 'list')],
    [
      'a file and an address',
      () => formBody({ trustListId: 'a', sourceUrl: 'https://a.example/' }, the.listOf()),
    ],
    ['no id', () => formBody({}, the.listOf())],
    ['another id than the pattern allows', () => formBody({ trustListId: 'A_b' }, the.listOf())],
    [
      'a pin that is no hash',
      () => formBody({ trustListId: 'a', expectedSignerSha256: 'abc' }, the.listOf()),
    ],
    [
      'a confirmation that is neither',
      () => formBody({ trustListId: 'a', confirmNewSigner: 'perhaps' }, the.listOf()),
    ],
    [
      'a field that is too long',
      () => formBody({ trustListId: 'a', sourceUrl: 'x'.repeat(5_000) }, the.listOf()),
    ],
    [
      'a field twice',
      () =>
        Buffer.concat([
          formBody({ trustListId: 'a' }, undefined).subarray(0, -`--${boundary}--\r\n`.length),
          formBody({ trustListId: 'b' }, the.listOf()),
        ]),
    ],
    [
      'a field that says it is JSON',
      () =>
        Buffer.from(
          `--${boundary}\r\ncontent-disposition: form-data; name="trustListId"\r\ncontent-type: application/json\r\n\r\n{x\r\n--${boundary}--\r\n`,
        ),
    ],
    ['a name of every object', () => formBody({ trustListId: 'a', constructor: 'x' }, the.listOf())],
    ['an end that is missing', () => formBody({ trustListId: 'a' }, the.listOf()).subarray(0, -8)],
    ['nothing', () => Buffer.alloc(0)],
  ])('are malformed with %s', async (_name, body) => {
    expect(outcome(await the.sendForm(body()))).toEqual([400, 'INVALID_REQUEST']);
  });

  it('are malformed without a boundary', async () => {
    const answer = await the.tenant.app.inject({
      method: 'POST',
      url: `${base}/import`,
      headers: { ...bearer(the.admin), 'content-type': 'multipart/form-data' },
      payload: 'x',
    });
    expect(outcome(answer)).toEqual([400, 'INVALID_REQUEST']);
  });

  it('are not JSON that has a file', async () => {
    const answer = await the.sendJson({
      trustListId: 'a',
      file: the.listOf().toString('base64'),
      ...the.pinned,
    });
    expect(outcome(answer)).toEqual([400, 'INVALID_REQUEST']);
  });
});

describe('addresses of trust lists', () => {
  const wish = (path: string) => ({
    trustListId: 'eu-pid',
    sourceUrl: `${the.source.address}${path}`,
    ...the.pinned,
  });

  it.each([
    'http://lists.example.org/tl.xml',
    'https://127.0.0.1/tl.xml',
    'https://[::ffff:10.0.0.1]/tl.xml',
    'https://169.254.169.254/latest/meta-data',
    'https://user:secret@lists.example.org/',
  ])('are not %s', async (sourceUrl) => {
    const answer = await the.sendJson({ trustListId: 'eu-pid', sourceUrl, ...the.pinned });
    expect(outcome(answer)).toEqual([400, 'TRUSTLIST_SOURCE_UNAVAILABLE']);
  });

  it.each(['ftp://lists.example.org/', 'file:///etc/passwd', 'list.xml'])(
    'have no form as %s',
    async (sourceUrl) => {
      const answer = await the.sendJson({ trustListId: 'eu-pid', sourceUrl, ...the.pinned });
      expect(outcome(answer)).toEqual([400, 'INVALID_REQUEST']);
    },
  );

  it('give one document, without redirects and of at most 10 MiB', { timeout: 60_000 }, async () => {
    the.source.documents = {
      '/moved': { status: 302, body: '', location: `${the.source.address}/list` },
      '/list': { body: the.listOf() },
      '/large': { body: Buffer.alloc(10 * mebibyte + 1, 0x20) },
      '/error': { status: 500, body: the.listOf() },
    };
    for (const path of ['/moved', '/large', '/error', '/absent']) {
      expect(outcome(await the.sendJson(wish(path)))).toEqual([400, 'TRUSTLIST_SOURCE_UNAVAILABLE']);
    }
    expect((await the.sendJson(wish('/list'))).statusCode).toBe(201);
  });

  it('are not asked before the signer is known', async () => {
    the.source.documents = { '/list': { body: the.listOf() } };
    const { expectedSignerSha256: _, ...unpinned } = wish('/list');
    expect(outcome(await the.sendJson(unpinned))).toEqual([400, 'TRUSTLIST_SIGNATURE_INVALID']);
    expect(the.source.requests).toBe(0);
  });
});

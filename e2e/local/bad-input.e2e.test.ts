import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer, Call } from '../harness/api.ts';
import { createRegister, createWallet, type Wallet, waitConfirmed, waitOnline } from '../harness/journey.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { mintWithSvid } from '../harness/service-token.ts';
import { installation } from '../harness/shared-system.ts';
import { inParallel } from '../harness/wait.ts';

const here = installation();
const validatePath = '/api/v1/transactions/validate';
const nobody = '00000000-0000-4000-8000-000000000000';
const noRegister = 'fe'.repeat(16);
const mebibyte = 1024 * 1024;

/** Whether a refusal has the specification's members and the request's own path, and reveals nothing internal. */
function isRefusal(answer: Answer, path: string, status: number | readonly number[]): void {
  const call = `${path}: ${JSON.stringify(answer.body)}`;
  expect([status].flat(), call).toContain(answer.status);
  expect(answer.headers.get('content-type'), call).toContain('application/problem+json');
  expect(answer.body, call).toMatchObject({
    error: expect.stringMatching(/./),
    code: expect.stringMatching(/^[A-Z][A-Z0-9_]+$/),
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    path: path.split('?')[0],
  });
  expect(JSON.stringify(answer.body), call).not.toMatch(/node_modules|\.ts:\d|select .* from|stack/i);
}

describe('bad input', () => {
  let owner: Wallet;
  let registerId = '';
  const key = createOutsideKey();
  const send = (method: string, path: string, call: Call = {}) =>
    here.api.send(method, path, { token: here.token(), ...call });
  const codeOf = (answer: Answer) => (answer.body as { code?: string }).code;
  const submitPath = () => `/api/registers/${registerId}/transactions`;
  const action = (payload: string) => ({
    transactionType: 'Action',
    senderAddress: owner.walletAddress,
    payload,
    metadata: {},
  });
  const totals = async () => {
    const [wallets, registers, transactions] = await Promise.all(
      ['/api/wallets', '/api/registers', submitPath()].map(async (path) => {
        const { body } = await here.api.expect(200, 'GET', path, { token: here.token() });
        return (body as { totalCount: number }).totalCount;
      }),
    );
    return { wallets, registers, transactions };
  };

  beforeAll(async () => {
    owner = await createWallet(here.api, here.token(), 'ED25519');
    registerId = await createRegister(here.api, here.token(), 'Bad input', owner);
    await waitOnline(here.api, here.token(), registerId);
  });

  const jsonRoutes = () => [
    '/api/wallets',
    `/api/wallets/${owner.id}/sign`,
    '/api/registers/initiate',
    '/api/registers/finalize',
    submitPath(),
    '/api/auth/login',
    '/api/auth/token/refresh',
    validatePath,
  ];

  test('malformed JSON, in every spelling, is refused everywhere and leaves nothing behind', async () => {
    const before = await totals();
    const texts = [
      '',
      '{',
      'null',
      '[]',
      '"text"',
      '{"title":"a","title":"b"}',
      '{"title":"\\ud800"}',
      '{"title":NaN}',
      '{"title":1,}',
      `${'{"a":'.repeat(80)}1${'}'.repeat(80)}`,
      '{} {}',
    ];
    for (const path of jsonRoutes()) {
      for (const text of texts) {
        isRefusal(await send('POST', path, { text }), path, 400);
      }
    }
    expect(await totals()).toEqual(before);
  });

  test('bytes that are not UTF-8 are refused', async () => {
    for (const path of jsonRoutes()) {
      const response = await fetch(new URL(path, here.api.baseUrl), {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${here.token()}` },
        body: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
      });
      expect([path, response.status]).toEqual([path, 400]);
      expect(await response.json()).toMatchObject({ code: expect.any(String), path });
    }
  });

  test('wrong types and missing members name the field', async () => {
    const cases: readonly [string, unknown][] = [
      ['/api/wallets', { title: 7, keyType: 'ED25519' }],
      ['/api/wallets', { title: 'x', keyType: 'ROT13' }],
      ['/api/wallets', {}],
      ['/api/registers/initiate', { title: ['x'], owners: [] }],
      ['/api/registers/initiate', { title: 'x', owners: 'me' }],
      ['/api/registers/finalize', { registerId, nonce: 4, signedAttestations: {} }],
      [submitPath(), { ...action('e30='), payload: 5 }],
      [submitPath(), { ...action('e30='), metadata: 'none' }],
      [`/api/wallets/${owner.id}/sign`, { data: { not: 'text' } }],
      [`/api/wallets/${owner.id}/sign`, { data: '!! no base64 !!' }],
    ];
    const before = await totals();
    for (const [path, json] of cases) {
      isRefusal(await send('POST', path, { json }), path, 400);
    }
    expect(await totals()).toEqual(before);
  });

  test('paging outside its range is refused or clamped, and never an internal error', async () => {
    for (const query of ['page=0', 'page=-1', 'page=x', 'pageSize=0', 'pageSize=1e9', 'pageSize=NaN']) {
      for (const path of ['/api/wallets', '/api/registers', submitPath()]) {
        const answer = await send('GET', `${path}?${query}`);
        if (answer.status !== 200) isRefusal(answer, path, 400);
      }
    }
  });

  test('another content type is 415, another method 405', async () => {
    for (const path of jsonRoutes()) {
      for (const type of ['text/plain', 'application/xml', 'multipart/form-data; boundary=x']) {
        const answer = await send('POST', path, { text: '{}', headers: { 'content-type': type } });
        isRefusal(answer, path, 415);
      }
    }
    const answer = await send('PATCH', '/api/wallets');
    isRefusal(answer, '/api/wallets', [404, 405]);
  });

  test('bodies that are too large: 413 at the gateway, at a service and for a transaction', async () => {
    const path = submitPath();
    const atGateway = await send('POST', path, { text: 'x'.repeat(10 * mebibyte + 1) });
    isRefusal(atGateway, path, 413);
    const wide = { title: 'x'.repeat(3 * mebibyte), keyType: 'ED25519' };
    isRefusal(await send('POST', '/api/wallets', { json: wide }), '/api/wallets', 413);
    const payload = Buffer.from(JSON.stringify('x'.repeat(524_288))).toString('base64');
    const tooLarge = await send('POST', path, { json: action(payload) });
    isRefusal(tooLarge, path, 413);
    expect(codeOf(tooLarge)).toBe('TRANSACTION_TOO_LARGE');
    const outside = signSubmission(key, { registerId, payload: { blob: 'x'.repeat(600_000) } });
    const refused = await send('POST', validatePath, { json: outside });
    isRefusal(refused, validatePath, 413);
    expect(codeOf(refused)).toBe('VAL_SIZE_001');
  });

  test('a body without end and headers without end are cut off', async () => {
    const chunk = new Uint8Array(mebibyte).fill(0x20);
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += chunk.length;
        if (sent > 64 * mebibyte) controller.close();
        else controller.enqueue(chunk);
      },
    });
    const outcome = await fetch(new URL('/api/wallets', here.api.baseUrl), {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${here.token()}` },
      body,
      duplex: 'half',
    }).then(
      (response) => response.status,
      () => 'cut off',
    );
    expect([413, 'cut off']).toContain(outcome);
    expect(sent).toBeLessThan(64 * mebibyte);
    const answer = await send('GET', '/api/wallets', { headers: { 'x-long': 'y'.repeat(64 * 1024) } });
    expect(answer.status).toBe(431);
    await here.api.expect(200, 'GET', '/api/wallets', { token: here.token() });
  });

  test('unknown ids are 404 with the same shape', async () => {
    const cases: readonly [string, string, unknown?][] = [
      ['GET', `/api/wallets/${nobody}`],
      ['GET', '/api/wallets/not-a-uuid'],
      ['POST', `/api/wallets/${nobody}/sign`, { data: 'e30=', algorithm: 'ED25519' }],
      ['GET', `/api/registers/${noRegister}`],
      ['GET', `/api/registers/${noRegister}/dockets`],
      ['GET', `/api/registers/${noRegister}/checkpoint`],
      ['POST', `/api/registers/${noRegister}/transactions`, action('e30=')],
      ['POST', `/api/registers/${noRegister}/dockets/seal`, {}],
      ['GET', `/api/registers/${registerId}/dockets/zz`],
      ['GET', `/api/registers/${registerId}/dockets/${'ab'.repeat(32)}`],
      ['GET', `/api/registers/${registerId}/transactions/${'ab'.repeat(32)}/inclusion-proof`],
      ['GET', `/api/registers/${registerId}/transactions/zz/record`],
      ['POST', `/api/admin/validation/pause/${noRegister}`],
      ['POST', '/api/admin/validation/pause/zz'],
      ['POST', validatePath, signSubmission(key, { registerId: noRegister, payload: {} })],
      ['GET', '/api/no-such-service/x'],
    ];
    for (const [method, path, json] of cases) {
      isRefusal(await send(method, path, json === undefined ? {} : { json }), path, 404);
    }
  });

  test('malformed paths are refused and do no harm', async () => {
    const paths = [
      '/api/wallets/%00',
      '/api/wallets/%ff',
      `/api/wallets/${'x'.repeat(5_000)}`,
      '/api/%2e%2e/x',
    ];
    for (const path of paths) {
      const { status } = await send('GET', path);
      expect([400, 404, 414], path).toContain(status);
    }
    await here.api.expect(200, 'GET', '/api/wallets', { token: here.token() });
  });

  test('a token of the wrong tier: services on routes of people, people on routes of services', async () => {
    const { token } = await mintWithSvid(here.state, 'service-wallet');
    const ofPeople = [
      ['GET', '/api/organizations'],
      ['GET', '/api/admin/validation/status'],
      ['POST', `/api/admin/validation/pause/${registerId}`],
    ] as const;
    for (const [method, path] of ofPeople) {
      isRefusal(await here.api.send(method, path, { token }), path, 403);
    }
    const path = `/api/registers/${registerId}/dockets`;
    isRefusal(await send('POST', path, { json: {} }), path, 403);
    // Introspection answers as RFC 6749 says, like every OAuth endpoint.
    const introspected = await send('POST', '/api/auth/token/introspect', { json: { token: here.token() } });
    expect([introspected.status, introspected.body]).toMatchObject([
      403,
      { error: expect.any(String), error_description: expect.any(String), code: 'FORBIDDEN' },
    ]);
  });

  test('a docket from an unauthorised caller is 403, a wrong one from an authorised caller is refused whole', async () => {
    const path = `/api/registers/${registerId}/dockets`;
    const { body: docket } = await here.api.expect(200, 'GET', `${path}/0`, { token: here.token() });
    const { token: wallet } = await mintWithSvid(here.state, 'service-wallet');
    const { token: validator } = await mintWithSvid(here.state, 'validator-0');
    const before = await totals();
    isRefusal(await send('POST', path, { json: docket }), path, 403);
    isRefusal(await here.api.send('POST', path, { token: wallet, json: docket }), path, 403);
    isRefusal(await here.api.send('POST', path, { json: docket }), path, 401);
    for (const json of [{}, docket, { ...(docket as object), docketNumber: 99 }]) {
      const answer = await here.api.send('POST', path, { token: validator, json });
      isRefusal(answer, path, [400, 409, 422]);
    }
    expect(await totals()).toEqual(before);
  });

  test('tokens that were tampered with are 401, whatever was changed', async () => {
    const [head = '', claims = '', signature = ''] = here.token().split('.');
    const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as Record<string, unknown>;
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const body = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>;
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const resign = (change: Record<string, unknown>, changedHeader: Record<string, unknown> = {}) => {
      const text = `${encode({ ...header, ...changedHeader })}.${encode({ ...body, ...change })}`;
      const own = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
      return `${text}.${own.toString('base64url')}`;
    };
    const hmac = (text: string) => createHmac('sha256', 'key').update(text).digest('base64url');
    const symmetric = `${encode({ ...header, alg: 'HS256' })}.${claims}`;
    const tokens = {
      'another key': resign({}),
      'another audience': resign({ aud: 'other:platform' }),
      'more roles': `${head}.${encode({ ...body, roles: ['SystemAdmin', 'More'] })}.${signature}`,
      'a later end': `${head}.${encode({ ...body, exp: Number(body['exp']) + 1 })}.${signature}`,
      'an unknown key id': resign({}, { kid: 'nobody' }),
      'no algorithm': `${encode({ ...header, alg: 'none' })}.${claims}.`,
      HS256: `${symmetric}.${hmac(symmetric)}`,
      'no signature': `${head}.${claims}.`,
    };
    for (const [what, token] of Object.entries(tokens)) {
      for (const path of ['/api/auth/me', '/api/wallets', '/api/registers', validatePath]) {
        const method = path === validatePath ? 'POST' : 'GET';
        const answer = await here.api.send(method, path, {
          token,
          ...(method === 'POST' ? { text: '{}' } : {}),
        });
        isRefusal(answer, path, 401);
        expect(answer.headers.get('www-authenticate'), what).toMatch(/^Bearer realm="platform"/);
      }
    }
  });

  test('a full pool answers 429 with Retry-After, and empties when validation is resumed', async () => {
    const act = (name: string) =>
      here.api.expect(200, 'POST', `/api/admin/validation/${name}/${registerId}`, { token: here.token() });
    await act('pause');
    const submissions = Array.from({ length: 257 }, (_, n) =>
      signSubmission(key, { registerId, payload: { full: n } }),
    );
    const answers = await inParallel(submissions, 16, (json) => send('POST', validatePath, { json }));
    const accepted = submissions.filter((_, n) => answers[n]?.status === 200);
    const refused = answers.filter((answer) => answer.status !== 200);
    expect([accepted.length, refused.length]).toEqual([256, 1]);
    for (const answer of refused) {
      isRefusal(answer, validatePath, 429);
      expect([codeOf(answer), answer.headers.get('retry-after')]).toEqual(['MEMPOOL_FULL', '1']);
    }
    await act('resume');
    await inParallel(accepted, 8, ({ TransactionId }) =>
      waitConfirmed(here.api, here.token(), registerId, TransactionId),
    );
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256Hex } from '#core/crypto/hash.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister, type TestRequest } from '../../testing/register.ts';

const owner = testKey(1);
const other = testKey(2);
const json = (value: unknown) => encodeBase64(canonicalBytes(value));

describe('transactions', () => {
  let register: TestRegister;
  let registerId: string;
  beforeAll(async () => {
    register = await startTestRegister('transactions');
    registerId = await register.createRegister();
    register.wallets.own('user', other);
  });
  afterAll(() => register.stop());

  const path = (rest = '') => `/api/registers/${registerId}/transactions${rest}`;

  const submit = (body: object, request: TestRequest & { query?: string } = {}) =>
    register.call('POST', path(request.query ?? ''), {
      token: 'admin',
      ...request,
      body: {
        transactionType: 'Action',
        senderAddress: owner.walletAddress,
        payload: json({ n: 1 }),
        metadata: { blueprintId: 'loan', actionId: '0' },
        ...body,
      },
    });

  const get = (rest: string, token = 'admin') => register.call('GET', path(rest), { token });

  it('signs as the caller; the transaction is pending, then confirmed with its docket', async () => {
    const sent = await submit({});
    expect(sent.status).toBe(202);
    expect(sent.body).toMatchObject({ status: 'pending' });
    expect(sent.body.timestamp).toMatch(/Z$/);
    const { transactionId } = sent.body;
    const list = await get('?status=pending');
    expect(list.body.items.map((item: { txId: string }) => item.txId)).toEqual([transactionId]);
    expect(list.body).toMatchObject({ totalCount: 1, hasMore: false });
    const waiting = await get(`/${transactionId}`);
    expect(waiting.body).toMatchObject({ status: 'pending', docketId: null, transactionType: 'Action' });
    expect((await get(`/${transactionId}/record`)).body.code).toBe('TX_NOT_SEALED');
    const { header } = await register.seal(registerId);
    const sealed = await get(`/${transactionId}`);
    expect(sealed.body).toMatchObject({
      status: 'confirmed',
      docketId: String(header.docketNumber),
      docketNumber: header.docketNumber,
      senderAddress: owner.walletAddress,
      payload: json({ n: 1 }),
      bound: true,
      did: `did:platform:register:${registerId}/tx:${transactionId}`,
      blueprintId: 'loan',
    });
    const record = await get(`/${transactionId}/record`);
    expect(sha256Hex(Buffer.concat([Buffer.from([0]), Buffer.from(record.text)]))).toBe(header.merkleRoot);
  });

  it("refuses a sender that is not the caller's", async () => {
    const foreign = await submit({ senderAddress: other.walletAddress });
    expect([foreign.status, foreign.body.code]).toEqual([403, 'SENDER_NOT_AUTHORIZED']);
    const nobody = await submit({ senderAddress: 'nobody' });
    expect([nobody.status, nobody.body.code]).toEqual([403, 'SENDER_NOT_AUTHORIZED']);
    expect(register.validators.pooled(registerId)).toEqual([]);
  });

  it('wraps payloads that are not JSON, and keeps the label of other types', async () => {
    const bytes = encodeBase64(Uint8Array.of(0, 255, 1));
    const { transactionId } = (await submit({ payload: bytes, transactionType: 'Rejection' })).body;
    const pooled = register.validators.pooled(registerId).at(-1);
    expect(JSON.parse(Buffer.from(pooled?.sealed.payload ?? []).toString())).toEqual({
      contentType: 'application/octet-stream',
      data: bytes,
    });
    expect((await get(`/${transactionId}`)).body.metadata.Type).toBe('Rejection');
    await register.seal(registerId);
  });

  it('submits a transaction with a ready-made signature unchanged', async () => {
    const text = '{"b":1,  "a":2}';
    const createdAt = '2026-11-21T10:00:00.0000000+00:00';
    const signatures = [
      { publicKey: owner.publicKey, signatureValue: encodeBase64(new Uint8Array(64)), algorithm: 'ED25519' },
    ];
    const transactionId = 'ab'.repeat(32);
    const payload = encodeBase64(Buffer.from(text));
    const payloadHash = sha256Hex('{"b":1,"a":2}');
    const sent = await submit(
      { payload, createdAt, signatures, transactionId, payloadHash },
      { token: 'user' },
    );
    expect(sent.body).toMatchObject({ transactionId, status: 'pending' });
    const [pooled] = register.validators.take(registerId, 1);
    expect(Buffer.from(pooled?.payload ?? []).toString()).toBe('{"b":1,"a":2}');
    expect(pooled?.payloadHashForm).toBe('compact');
    expect((await submit({ payload, signatures })).status).toBe(400);
    const unknown = [{ ...signatures[0], algorithm: 'ED448' }];
    expect(
      (await submit({ payload, createdAt, signatures: unknown, transactionId, payloadHash })).body.code,
    ).toBe('VAL_SIG_001');
  });

  it("returns a validator's refusal with its status and body, and the path of the called route", async () => {
    const elsewhere = '/api/v1/transactions/validate';
    const facts = {
      type: 'urn:platform:error:mempool-full',
      title: 'Too Many Requests',
      status: 429,
      detail: 'The register has no room.',
      error: 'The register has no room.',
      isValid: false,
      added: false,
      code: 'MEMPOOL_FULL',
      errors: [{ code: 'MEMPOOL_FULL' }],
    };
    const timestamp = expect.stringMatching(/^20..-/);
    const body = { ...facts, timestamp: '2026-05-04T09:30:00.000Z', instance: elsewhere, path: elsewhere };
    register.validators.refuseNext({ status: 429, body, retryAfterSeconds: 7 });
    const refused = await submit({}, { headers: { 'idempotency-key': 'refused' } });
    const path = `/api/registers/${registerId}/transactions`;
    const traceId = expect.stringMatching(/^[0-9a-f]{32}$/);
    const expected = { ...facts, timestamp, instance: path, path, traceId };
    expect([refused.status, refused.body, refused.headers['retry-after']]).toEqual([429, expected, '7']);
    const again = await submit({}, { headers: { 'idempotency-key': 'refused' } });
    expect(again.status).toBe(202);
    register.validators.take(registerId, 10);
  });

  it('answers 503 while no validator can be reached', async () => {
    register.validators.down = true;
    const sent = await submit({});
    const read = await get(`/${'c'.repeat(64)}`);
    register.validators.down = false;
    expect([sent.status, sent.body.code]).toEqual([503, 'VALIDATOR_UNAVAILABLE']);
    expect([read.status, read.body.code]).toEqual([503, 'VALIDATOR_UNAVAILABLE']);
    expect((await get(`/${'c'.repeat(64)}`)).body.code).toBe('TX_NOT_FOUND');
    expect((await get('/not-an-id')).body.code).toBe('TX_NOT_FOUND');
  });

  it('refuses transactions that are too large, malformed or not allowed', async () => {
    const large = await submit({ payload: encodeBase64(new Uint8Array(524_289)) });
    expect([large.status, large.body.code]).toEqual([413, 'TRANSACTION_TOO_LARGE']);
    expect((await submit({ payload: '***' })).status).toBe(400);
    expect((await submit({ metadata: { a: 1 } })).status).toBe(400);
    expect((await submit({ recipients: ['nobody'] })).status).toBe(400);
    expect((await submit({ previousTransactionId: 'x' })).status).toBe(400);
    const stranger = await submit({}, { token: 'stranger' });
    expect([stranger.status, stranger.body.code]).toEqual([403, 'SUBSCRIPTION_REQUIRED']);
    const anonymous = await register.call('POST', path(), { body: {} });
    expect(anonymous.status).toBe(401);
    const missing = `/api/registers/${'d'.repeat(32)}/transactions`;
    const body = { senderAddress: owner.walletAddress, payload: json(1) };
    expect((await register.call('POST', missing, { token: 'admin', body })).status).toBe(404);
  });

  it('executes a request once per Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'pay-1' };
    const first = await submit({ payload: json({ pay: 1 }) }, { headers });
    const second = await submit({ payload: json({ pay: 1 }) }, { headers });
    expect(second.body).toEqual(first.body);
    expect(register.validators.pooled(registerId)).toHaveLength(1);
    const other = await submit({ payload: json({ pay: 2 }) }, { headers });
    expect([other.status, other.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
    await register.seal(registerId);
  });

  it('waits for the confirmation, at most as long as requested', async () => {
    const answer = submit({ payload: json({ waits: true }) }, { query: '?wait=confirmed&timeout=20' });
    await waitFor(() => register.validators.pooled(registerId).length > 0);
    await register.seal(registerId);
    const confirmed = await answer;
    expect(confirmed.status).toBe(200);
    expect(confirmed.body).toMatchObject({ status: 'confirmed', payload: json({ waits: true }) });
    const late = await submit({ payload: json({ waits: false }) }, { query: '?wait=confirmed&timeout=0' });
    expect([late.status, late.body.status]).toEqual([202, 'pending']);
    await register.seal(registerId);
  });

  it('pages through everything once, newest first', async () => {
    for (let docket = 0; docket < 3; docket += 1) {
      for (let count = 0; count < 5; count += 1) {
        const own = count % 2 === 0;
        await submit(
          { payload: json({ docket, count }), senderAddress: (own ? owner : other).walletAddress },
          { token: own ? 'admin' : 'user' },
        );
      }
      await register.seal(registerId, 1000);
    }
    const all = (await get('?pageSize=100')).body;
    expect(all.items).toHaveLength(all.totalCount);
    const paged: string[] = [];
    for (let page = 1, more = true; more; page += 1) {
      const one = (await get(`?page=${page}&pageSize=4`)).body;
      paged.push(...one.items.map((item: { txId: string }) => item.txId));
      more = one.hasMore;
      expect(one).toMatchObject({ page, pageSize: 4, totalCount: all.totalCount });
    }
    expect(paged).toEqual(all.items.map((item: { txId: string }) => item.txId));
    expect((await get('?page=1000')).body.items).toEqual([]);
    expect((await get('?pageSize=101')).status).toBe(400);
  });

  it('filters by sender and time, and continues with a cursor', async () => {
    const query = `?senderAddress=${other.walletAddress}&pageSize=4`;
    const first = (await get(query)).body;
    expect(first).toMatchObject({ totalCount: 6, hasMore: true });
    const rest = (await get(`${query}&before=${first.next}`)).body;
    expect(rest.items).toHaveLength(2);
    expect(rest.hasMore).toBe(false);
    const second = (await get(`${query}&page=2`)).body;
    expect(second.items).toEqual(rest.items);
    const newest = first.items[0];
    const from = encodeURIComponent(newest.createdAt);
    const since = (await get(`?startTime=${from}`)).body;
    expect(since.items.map((item: { txId: string }) => item.txId)).toContain(newest.txId);
    const until = (await get(`?senderAddress=${other.walletAddress}&endTime=${from}`)).body;
    expect(until.totalCount).toBe(5);
    expect((await get('?startTime=yesterday')).status).toBe(400);
    expect((await get(`?senderAddress=${other.walletAddress}&page=10000&pageSize=100`)).body.code).toBe(
      'PAGE_TOO_DEEP',
    );
  });

  it('filters by OData, combined with the other filters', async () => {
    const list = async (filter: string, more = '') =>
      (await get(`?$filter=${encodeURIComponent(filter)}&pageSize=100${more}`)).body;
    const all = (await get('?pageSize=100')).body;
    expect((await list('true')).items).toEqual(all.items);
    expect(await list(`senderAddress eq '${other.walletAddress}'`)).toMatchObject({ totalCount: 6 });
    const both = await list("transactionType eq 'Action'", `&senderAddress=${other.walletAddress}`);
    expect([both.items.length, both.totalCount, both.hasMore]).toEqual([6, 6, false]);
    const newest = both.items[0];
    const from = encodeURIComponent(newest.createdAt);
    expect((await list('true', `&senderAddress=${other.walletAddress}&endTime=${from}`)).items).toHaveLength(
      5,
    );
    expect((await list(`timestamp lt ${newest.createdAt}`, `&startTime=${from}`)).items).toEqual([]);
    const page = (await get(`?$filter=position%20ge%200&pageSize=4`)).body;
    const rest = (await get(`?$filter=position%20ge%200&pageSize=100&before=${page.next}`)).body;
    expect([...page.items, ...rest.items]).toEqual(all.items);
    const second = (await get(`?$filter=position%20ge%200&pageSize=4&page=2`)).body;
    expect(second.items).toEqual(all.items.slice(4, 8));
    const wrong = await get(`?$filter=${encodeURIComponent('true or x eq 1')}`);
    expect([wrong.status, wrong.body]).toEqual([
      400,
      expect.objectContaining({ code: 'QUERY_INVALID', option: '$filter', position: 8 }),
    ]);
    expect((await get('?$filter=true&status=pending')).status).toBe(501);
    expect((await get('?$filter=true', 'stranger')).status).toBe(404);
    const elsewhere = await list(`registerId eq '${'0'.repeat(32)}'`);
    expect([elsewhere.items, elsewhere.totalCount]).toEqual([[], 0]);
  });

  it('seals 250 transactions in dockets of at most 100, in their order', async () => {
    const sent: string[] = [];
    for (let count = 0; count < 250; count += 1) {
      sent.push((await submit({ payload: json({ load: count }) })).body.transactionId);
    }
    const dockets = [];
    while (register.validators.pooled(registerId).length > 0)
      dockets.push(await register.seal(registerId, 100));
    expect(dockets.map((one) => one.header.transactionIds.length)).toEqual([100, 100, 50]);
    expect(dockets.flatMap((one) => one.header.transactionIds)).toEqual(sent);
    const [first] = dockets;
    const number = first?.header.docketNumber ?? 0;
    const list = await register.call('GET', `/api/registers/${registerId}/dockets?from=${number}&order=asc`, {
      token: 'admin',
    });
    expect(list.body).toMatchObject({ totalCount: 3 });
    for (const [index, docket] of list.body.items.entries()) {
      expect(docket.docketNumber).toBe(number + index);
      if (index > 0) expect(docket.previousHash).toBe(list.body.items[index - 1].hash);
    }
    const part = await register.call(
      'GET',
      `/api/registers/${registerId}/dockets/${number}/transactions?pageSize=30&page=4`,
      {
        token: 'admin',
      },
    );
    expect(part.body.items.map((item: { txId: string }) => item.txId)).toEqual(sent.slice(90, 100));
  });

  it('seals on demand', async () => {
    const nothing = await register.call('POST', `/api/registers/${registerId}/dockets/seal`, {
      token: 'user',
    });
    expect([nothing.status, nothing.body.code]).toEqual([409, 'NO_PENDING_TRANSACTIONS']);
    await submit({ payload: json({ sealed: 'on demand' }) });
    const sealed = await register.call('POST', `/api/registers/${registerId}/dockets/seal`, {
      token: 'user',
      body: {},
    });
    expect(sealed.status).toBe(201);
    expect(sealed.body).toMatchObject({ transactionCount: 1 });
    expect(sealed.body.docketId).toBe(String(sealed.body.docketNumber));
    const byHash = await register.call('GET', `/api/registers/${registerId}/dockets/${sealed.body.hash}`, {
      token: 'user',
    });
    expect(byHash.body.docketNumber).toBe(sealed.body.docketNumber);
    for (const id of ['99999', 'x', 'f'.repeat(64), '-1']) {
      const answer = await register.call('GET', `/api/registers/${registerId}/dockets/${id}`, {
        token: 'user',
      });
      expect(answer.body.code).toBe('DOCKET_NOT_FOUND');
    }
  });
});

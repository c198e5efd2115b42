import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { nextTimestamp } from '../../chain/building/docket.ts';
import { otherRegister, serviceCaller, TestServer, userCaller } from '../../testing/test-server.ts';
import { registerId } from '../../testing/world.ts';

const served = new TestServer();
const { world } = served;
beforeAll(() => served.open());
afterAll(() => served.close());

const post = (path: string, body: unknown) => served.send('POST', `/api/validation/${path}`, body);
const waiting = (id = registerId, query = '') =>
  served.send('GET', `/api/validation/transactions/${id}${query}`);

/** Transactions keep waiting while a register is paused. */
beforeEach(() => world.engine.setMode(registerId, 'Paused'));
afterEach(async () => {
  served.caller = serviceCaller;
  served.subscriptions.isSubscribed = async () => true;
  served.beyond.forward = async () => undefined;
  served.beyond.findRules = async () => undefined;
  for (const name of Object.keys(served.peerClients)) Reflect.deleteProperty(served.peerClients, name);
  await world.engine.setMode(registerId, 'Running');
  await world.register.seal(undefined, 5_000);
});

async function submitted(count: number): Promise<string[]> {
  const signed = Array.from({ length: count }, () => world.sign());
  for (const { text } of signed) expect((await world.submit(text)).status).toBe(200);
  return signed.map(({ txId }) => txId);
}

describe('the waiting transactions', () => {
  it('are listed page by page in the order in which they may be sealed', async () => {
    const ids = await submitted(3);
    const first = (await waiting(registerId, '?pageSize=2')).json();
    expect(first).toMatchObject({ page: 1, pageSize: 2, totalCount: 3, totalPages: 2, hasMore: true });
    expect(first.items.map((item: { txId: string }) => item.txId)).toEqual(ids.slice(0, 2));
    expect(first.items[0]).toMatchObject({
      transactionId: ids[0],
      registerId,
      transactionType: 'Action',
      status: 'pending',
      docketId: null,
    });
    const second = (await waiting(registerId, '?pageSize=2&page=2')).json();
    expect(second.items.map((item: { txId: string }) => item.txId)).toEqual(ids.slice(2));
    expect((await waiting(registerId, '?pageSize=101')).statusCode).toBe(400);
  });

  it('are hidden from organisations that do not subscribe to the register', async () => {
    await submitted(1);
    served.caller = userCaller;
    expect((await waiting()).json().items).toHaveLength(1);
    const { docket } = await built();
    served.subscriptions.isSubscribed = async () => false;
    const hidden = await waiting();
    expect([hidden.statusCode, hidden.json().code]).toEqual([404, 'REGISTER_NOT_FOUND']);
    for (const [path, body] of [
      ['dockets/build', { registerId }],
      ['dockets/validate', { docket }],
    ] as const)
      expect((await post(path, body)).json()).toMatchObject({ status: 404, code: 'REGISTER_NOT_FOUND' });
    served.subscriptions.isSubscribed = async () => {
      throw new AppError('not_found', 'REGISTER_NOT_FOUND', 'The register does not exist');
    };
    expect((await waiting()).statusCode).toBe(404);
    expect((await waiting('nonsense')).statusCode).toBe(404);
  });

  it("are requested from a member by a non-member, with the caller's token", async () => {
    const request: unknown[] = [];
    served.peerClients.listWaiting = async (validatorId, query) => {
      request.push([validatorId, query.registerId, query.offset, query.limit, query.subjectToken]);
      if (validatorId === 'validator-1') throw new AppError('unavailable', 'UNAVAILABLE', 'away');
      return { transactions: [], total: 7 };
    };
    const url = `/api/validation/transactions/${otherRegister}?page=2`;
    const answer = await served.app.inject({ url, headers: { authorization: 'Bearer theirs' } });
    expect(answer.json()).toMatchObject({ items: [], totalCount: 7 });
    expect(request).toEqual([
      ['validator-1', otherRegister, 20, 20, 'theirs'],
      ['validator-2', otherRegister, 20, 20, 'theirs'],
    ]);
    served.peerClients.listWaiting = async (validatorId) => {
      const code = validatorId === 'validator-1' ? 'SERVICE_UNAVAILABLE' : 'REGISTER_NOT_READY';
      throw new AppError('unavailable', code, 'not now');
    };
    expect((await waiting(otherRegister)).json()).toMatchObject({ status: 503, code: 'REGISTER_NOT_READY' });
    Reflect.deleteProperty(served.peerClients, 'listWaiting');
    expect((await waiting(otherRegister)).json()).toMatchObject({
      status: 503,
      code: 'VALIDATOR_UNAVAILABLE',
    });
    expect((await waiting('cd'.repeat(16))).statusCode).toBe(404);
  });
});

async function built(body: object = {}) {
  const answer = await post('dockets/build', { registerId, ...body });
  expect(answer.statusCode).toBe(200);
  return answer.json();
}

describe('building a docket', () => {
  it('returns the docket that would be proposed, without effect', async () => {
    const { height, headHash, membersHash } = world.register.state;
    const ids = await submitted(3);
    const answer = await built({ maxTransactions: 2 });
    expect(answer).toMatchObject({
      isSuccess: true,
      docket: {
        registerId,
        docketId: String(height),
        docketNumber: height,
        previousHash: headHash,
        transactionIds: ids.slice(0, 2),
        transactionCount: 2,
        validatorAddress: world.signer.key.walletAddress,
        validatorSetHash: membersHash,
        state: 'Init',
        consensusState: 'Pending',
      },
      metrics: { transactionsProcessed: 3, transactionsIncluded: 2, transactionsRejected: 0 },
    });
    expect(answer.metrics.docketSizeBytes).toBe(answer.docket.sizeBytes);
    expect(answer.metrics.buildDuration).toMatch(/^\d\d:\d\d:\d\d\.\d{7}$/);
    expect((await waiting()).json().totalCount).toBe(3);
    expect(world.register.state.height).toBe(height);
    expect(world.register.work.total.built).toBe(height);
  });

  it('returns none when nothing waits, and refuses unknown addresses and fields', async () => {
    expect(await built()).toMatchObject({ isSuccess: false, docket: null });
    const stranger = await post('dockets/build', { registerId, validatorWalletAddress: 'w1stranger' });
    expect(stranger.json()).toMatchObject({
      status: 400,
      errors: [{ code: 'INVALID_REQUEST', field: 'validatorWalletAddress' }],
    });
    expect((await post('dockets/build', { registerId, more: 1 })).statusCode).toBe(400);
    expect((await post('dockets/build', { registerId, maxTransactions: 0 })).statusCode).toBe(400);
  });

  it('seals for register managers, and waits for the result', async () => {
    const [id] = await submitted(1);
    served.caller = userCaller;
    const refused = await post('dockets/build', { registerId, seal: true });
    expect([refused.statusCode, refused.json().code]).toEqual([403, 'FORBIDDEN']);
    served.caller = serviceCaller;
    const paused = await post('dockets/build', { registerId, seal: true });
    expect([paused.statusCode, paused.json().code]).toEqual([503, 'QUORUM_UNAVAILABLE']);
    await world.engine.setMode(registerId, 'Running');
    const sealed = await built({ seal: true });
    const [first] = sealed.docket?.transactionIds ?? [];
    expect(sealed.docket).toMatchObject({ state: 'Sealed', consensusState: 'Achieved' });
    expect(first).toBe(id);
    expect(world.ledger.sealed.has(id ?? '')).toBe(true);
    const nothing = await post('dockets/build', { registerId, seal: true });
    expect([nothing.statusCode, nothing.json().code]).toEqual([409, 'NO_PENDING_TRANSACTIONS']);
  });
});

/** The docket that would be proposed, with its transactions. */
async function given() {
  await submitted(2);
  const { docket } = await built();
  const transactions = [...world.register.pool.waiting()].map(({ record, payload }) => ({
    record: Buffer.from(record).toString('base64'),
    payload: Buffer.from(payload).toString('base64'),
  }));
  return { ...docket, transactions };
}

async function codesOf(docket: object, previousDocket?: object): Promise<string[]> {
  const answer = await post('dockets/validate', { docket, ...(previousDocket && { previousDocket }) });
  expect(answer.statusCode).toBe(400);
  const body = answer.json();
  expect(body).toMatchObject({ isValid: false, code: body.errors[0].code });
  expect(body.validationDuration).toMatch(/^00:00:\d\d\.\d{7}$/);
  const errors = body.errors as { code: string; severity: string }[];
  return errors.filter(({ severity }) => severity !== 'Warning').map(({ code }) => code);
}

describe('validating a docket', () => {
  it('answers as the specification requires, with warnings only for absent parts', async () => {
    const docket = await given();
    const answer = await post('dockets/validate', { docket });
    expect(answer.json()).toMatchObject({
      isValid: true,
      errors: [{ code: 'NOT_JUDGED', field: 'certificate', severity: 'Warning' }],
    });
    const { transactions: _, ...header } = docket;
    const fields = (await post('dockets/validate', { docket: header })).json().errors;
    expect(fields.map(({ field }: { field: string }) => field)).toEqual(['certificate', 'transactions']);
  });

  it('finds each violation by its code', async () => {
    const docket = await given();
    const { height } = world.register.state;
    const zero = '00'.repeat(32);
    const wrong: [object, string][] = [
      [{ registerId: '' }, 'REGISTER_ID_REQUIRED'],
      [{ registerId: undefined }, 'REGISTER_ID_REQUIRED'],
      [{ previousHash: zero }, 'PREVIOUS_HASH_MISMATCH'],
      [{ docketNumber: height + 1 }, 'DOCKET_NUMBER_SEQUENCE'],
      [{ docketNumber: 0 }, 'GENESIS_REQUIRES_NO_PREVIOUS'],
      [{ hash: zero }, 'HASH_MISMATCH'],
      [{ timestamp: '2020-01-01T00:00:00.0000000+00:00' }, 'TIMESTAMP_NOT_AFTER_PREVIOUS'],
      [{ merkleRoot: zero }, 'MERKLE_MISMATCH'],
      [{ logRoot: zero }, 'MERKLE_MISMATCH'],
      [{ transactions: docket.transactions.slice(1) }, 'MERKLE_MISMATCH'],
      [{ sizeBytes: 1 }, 'HASH_MISMATCH'],
    ];
    for (const [over, code] of wrong) {
      const codes = await codesOf({ ...docket, ...over });
      expect({ over, codes }).toEqual({ over, codes: expect.arrayContaining([code]) });
    }
  });

  it('needs the preceding docket of an earlier one, and an existing one', async () => {
    const docket = await given();
    const { headHash, headTimestamp, height } = world.register.state;
    const earlier = { ...docket, docketNumber: height - 1 };
    if (height > 1) expect(await codesOf(earlier)).toContain('PREVIOUS_DOCKET_REQUIRED');
    const previous = { docketNumber: height + 4, hash: headHash, timestamp: headTimestamp };
    const later = { ...docket, docketNumber: height + 5 };
    expect(await codesOf(later, previous)).toEqual(['HASH_MISMATCH']);
    const unknown = { ...docket, registerId: 'ef'.repeat(16), docketNumber: 3 };
    expect(await codesOf(unknown)).toContain('PREVIOUS_DOCKET_REQUIRED');
  });

  it('verifies signatures, votes and the certificate', async () => {
    const docket = await given();
    const [first, ...rest] = docket.transactions;
    const record = JSON.parse(Buffer.from(first.record, 'base64').toString());
    const [signature] = record.signatures;
    const forged = {
      ...record,
      signatures: [{ ...signature, signatureValue: `AAAA${signature.signatureValue.slice(4)}` }],
    };
    const swapped = { ...docket, transactions: [{ ...first, record: forged }, ...rest] };
    expect(await codesOf(swapped)).toEqual(expect.arrayContaining(['SIGNATURE_INVALID']));
    const other = { ...docket, transactions: [{ ...first, payload: 'AAAA' }, ...rest] };
    expect(await codesOf(other)).toEqual(['HASH_MISMATCH']);
    const vote = {
      docketHash: docket.hash,
      validatorId: 'validator-0',
      validatorAddress: world.signer.key.walletAddress,
      approved: true,
      timestamp: docket.timestamp,
      signature: '00'.repeat(64),
      algorithm: 'ED25519',
      publicKey: world.signer.key.publicKey,
    };
    expect(await codesOf({ ...docket, consensusVotes: [vote] })).toEqual(['SIGNATURE_INVALID']);
    const { hash: docketHash, merkleRoot, logRoot, validatorSetHash } = docket;
    const certificate = {
      version: 1,
      height: docket.docketNumber,
      round: 0,
      docketHash,
      merkleRoot,
      logRoot,
      validatorSetHash,
      signatures: [],
    };
    expect(await codesOf({ ...docket, certificate })).toEqual(['CERTIFICATE_INVALID']);
  });

  it('accepts a sealed docket with its certificate', async () => {
    await world.engine.setMode(registerId, 'Running');
    const { state } = world.register;
    await submitted(1);
    await world.register.seal(undefined, 5_000);
    const sealed = world.ledger.dockets.findLast(({ docket }) => docket.header.docketNumber === state.height);
    const previousDocket = {
      docketNumber: state.height - 1,
      hash: state.headHash,
      timestamp: state.headTimestamp,
    };
    const transactions = sealed?.docket.transactions.map(({ record, payload }) => ({
      record: Buffer.from(record).toString('base64'),
      payload: Buffer.from(payload).toString('base64'),
    }));
    const docket = { ...sealed?.docket.header, certificate: sealed?.certificate, transactions };
    const answer = await post('dockets/validate', { docket, previousDocket });
    expect(answer.json()).toMatchObject({ isValid: true, errors: [] });
    const [signature] = sealed?.certificate.signatures ?? [];
    const early = { ...signature, timestamp: nextTimestamp(world.register.state, 0n) };
    const certificate = { ...sealed?.certificate, signatures: [early] };
    expect(await codesOf({ ...docket, certificate }, previousDocket)).toEqual(['CERTIFICATE_INVALID']);
  });
});

describe('sealing at another member', () => {
  it('is requested once when its outcome is unknown', async () => {
    const request: string[] = [];
    served.peerClients.buildDocket = async (validatorId) => {
      request.push(validatorId);
      throw new AppError('timeout', 'TIMEOUT', 'no answer');
    };
    const order = { registerId: otherRegister, seal: true };
    const answer = await post('dockets/build', order);
    expect([answer.statusCode, answer.json().code]).toEqual([504, 'CONSENSUS_TIMEOUT']);
    expect(request).toEqual(['validator-1']);
    await post('dockets/build', { ...order, seal: false });
    expect(request).toEqual(['validator-1', 'validator-1', 'validator-2']);
  });
});

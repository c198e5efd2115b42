import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { createHttpServer } from '#kit/http/http.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { nextMode } from './chain/sealing/modes.ts';
import { type Deps, mountRoutes } from './http.ts';
import { uptimeText } from './surfaces/admin/status.ts';
import { submissionHandlers } from './surfaces/submissions/rpc.ts';
import { serviceCaller, TestServer, userCaller } from './testing/test-server.ts';

const served = new TestServer();
const { world, app, subscriptions } = served;
beforeAll(() => served.open());
afterAll(() => served.close());

const post = (url: string, payload = '') => served.send('POST', url, payload);

describe('HTTP', () => {
  it('registers its routes without reading their dependencies', async () => {
    const recording = createHttpServer({ runtime: testRuntime('validator'), title: 'Validator' });
    mountRoutes(recording, {} as Deps);
    await recording.ready();
    const document = (await recording.inject('/openapi.json')).json();
    expect(Object.keys(document.paths)).toContain('/api/v1/transactions/validate');
    const { requestBody } = document.paths['/api/v1/transactions/validate'].post;
    expect(JSON.stringify(requestBody)).toContain('TransactionId');
    await recording.close();
  });

  it('accepts a submission and answers as the specification requires', async () => {
    const draft = world.sign({ payload: { over: 'http' } });
    const added = await post('/api/v1/transactions/validate', draft.text);
    expect(added.statusCode).toBe(200);
    expect(added.json()).toMatchObject({ isValid: true, added: true, transactionId: draft.txId });
    const wrong = await post(
      '/api/v1/transactions/validate',
      world.sign({ tamper: { PayloadHash: '00'.repeat(32) } }).text,
    );
    expect(wrong.statusCode).toBe(400);
    expect(wrong.headers['content-type']).toContain('application/problem+json');
    expect(wrong.json()).toMatchObject({
      isValid: false,
      added: false,
      code: 'VAL_HASH_001',
      path: '/api/v1/transactions/validate',
      instance: '/api/v1/transactions/validate',
      errors: [{ code: 'VAL_HASH_001', field: 'PayloadHash', severity: 'Error' }],
    });
    const batch = await app.inject({
      method: 'POST',
      url: '/api/v1/transactions/batch',
      headers: { 'content-type': 'application/x-ndjson' },
      payload: `${world.sign({ tamper: { PayloadHash: '00'.repeat(32) } }).text}\n`,
    });
    const place = { instance: '/api/v1/transactions/batch', path: '/api/v1/transactions/batch' };
    expect(batch.json()).toMatchObject({ refused: 1, results: [{ code: 'VAL_HASH_001', ...place }] });
    expect((await post('/api/v1/transactions/validate', 'not json')).statusCode).toBe(400);
    expect((await post('/api/v1/transactions/validate')).statusCode).toBe(400);
  });

  it('shows registers that the organisation subscribes to, without deleted ones', async () => {
    served.caller = userCaller;
    const seen = async () =>
      (await app.inject('/api/metrics/consensus'))
        .json()
        .byRegister.map(({ registerId }: { registerId: string }) => registerId);
    expect(await seen()).toEqual([world.register.id]);
    subscriptions.isSubscribed = async () => {
      throw new AppError('not_found', 'REGISTER_NOT_FOUND', 'The register does not exist');
    };
    expect(await seen()).toEqual([]);
    subscriptions.isSubscribed = async () => false;
    expect(await seen()).toEqual([]);
    served.caller = serviceCaller;
  });

  it('starts, pauses, resumes and stops a register', async () => {
    const { id } = world.register;
    const act = async (name: string) => (await post(`/api/admin/validation/${name}/${id}`)).json();
    expect(await act('start')).toMatchObject({
      registerId: id,
      status: 'Running',
      message: 'Validation is Running already',
    });
    expect(await act('pause')).toMatchObject({ status: 'Paused' });
    expect(await act('resume')).toMatchObject({ status: 'Running' });
    expect(await act('stop')).toMatchObject({ status: 'Stopped' });
    expect(await act('resume')).toMatchObject({ status: 409, code: 'VALIDATION_STOPPED' });
    const refused = await post('/api/v1/transactions/validate', world.sign({ payload: { late: true } }).text);
    expect(refused.statusCode).toBe(503);
    expect(refused.headers['retry-after']).toBe('5');
    const status = (await app.inject('/api/admin/validation/status')).json();
    expect(status.registers).toMatchObject([
      { registerId: id, status: 'Stopped', role: 'observer', quorum: 1 },
    ]);
    expect(await act('start')).toMatchObject({ status: 'Running' });
    expect((await post(`/api/admin/validation/start/${'ff'.repeat(16)}`)).statusCode).toBe(404);
    expect((await post('/api/admin/validation/start/nonsense')).statusCode).toBe(404);
  });

  it('answers the operator from memory', async () => {
    const member = (await app.inject('/api/internal/consensus')).json();
    expect(member).toMatchObject({
      validatorId: 'validator-0',
      publicKey: world.signer.key.publicKey,
      walletAddress: world.signer.key.walletAddress,
      did: `did:platform:w:${world.signer.key.walletAddress}`,
      protocolVersion: 1,
      endpoint: '127.0.0.1:5000',
      drain: { state: 'None', since: null, alone: [] },
      conditions: [],
      mempool: { maxBytes: 256 * 1024 * 1024 },
    });
    const { id, state } = world.register;
    const [shown] = member.registers;
    expect(shown).toMatchObject({
      registerId: id,
      status: 'Running',
      membership: 'Active',
      isMember: true,
      role: 'proposer',
      isProposer: true,
      quorum: 1,
      members: ['validator-0'],
      operational: 1,
      behind: 0,
      headHash: state.headHash,
    });
    expect(shown.roots.at(-1)).toEqual({ height: state.height, root: world.register.rootAt(state.height) });
  });

  it('drains and undrains', async () => {
    const drain = async () => (await post('/api/internal/drain', '{}')).json();
    const first = await drain();
    expect(first).toMatchObject({ state: 'Drained', waiting: 0 });
    expect(await drain()).toEqual(first);
    const { text } = world.sign({ payload: { drained: true } });
    const refused = await post('/api/v1/transactions/validate', text);
    expect([refused.statusCode, refused.json().code]).toEqual([503, 'VALIDATOR_DRAINING']);
    expect(refused.headers['x-retry-elsewhere']).toBe('true');
    expect((await app.inject('/api/internal/consensus')).json().drain).toEqual(first);
    expect((await post('/api/internal/undrain', '{}')).json()).toMatchObject({ state: 'None', since: null });
    expect((await post('/api/v1/transactions/validate', text)).statusCode).toBe(200);
  });

  it('starts and stops a local register for the operator', async () => {
    const { id } = world.register;
    const act = (name: string, registerId = id) =>
      post(`/api/internal/validation/${registerId}`, JSON.stringify({ act: name }));
    expect((await act('pause')).json()).toEqual({ registerId: id, status: 'Paused', changed: true });
    expect((await act('pause')).json()).toMatchObject({ changed: false });
    expect((await act('start')).json()).toMatchObject({ status: 'Running' });
    expect((await act('explode')).statusCode).toBe(400);
    expect((await act('stop', 'ff'.repeat(16))).statusCode).toBe(404);
    expect((await act('stop', 'nonsense')).statusCode).toBe(404);
  });
});

describe('gRPC handlers', () => {
  const context = {
    peer: { spiffeId: 'spiffe://x', clientId: 'service-register' },
    signal: new AbortController().signal,
  };
  const handlers = () =>
    submissionHandlers({
      admission: world.engine.admission,
      registers: world.engine.registers,
      nowMs: () => Date.now(),
    });
  const request = <T>(value: T) => value as T & never;

  it('finds and lists waiting transactions, then dropped ones', async () => {
    const registerId = world.register.id;
    await world.engine.setMode(registerId, 'Paused');
    const parent = world.sign({ payload: { waits: 1 } });
    const child = world.sign({ payload: { waits: 2 }, previous: parent.txId });
    for (const { text } of [parent, child]) {
      const { status, bodyJson } = await handlers().submit(
        request({ submissionJson: Buffer.from(text) }),
        context,
      );
      expect(status).toBe(200);
      expect(JSON.parse(Buffer.from(bodyJson ?? []).toString())).toMatchObject({ added: true });
    }
    const listed = await handlers().listPending(request({ registerId, limit: 1 }), context);
    expect(listed).toMatchObject({
      total: 2,
      transactions: [{ transactionId: parent.txId, status: 'pending' }],
    });
    const tombstone = {
      registerId,
      txId: parent.txId,
      status: 'expired',
      code: 'VAL_TIME_003',
      message: 'late',
      atMs: Date.now(),
    } as const;
    expect(world.register.drop(tombstone)).toHaveLength(2);
    const ids = { registerId, transactionIds: [parent.txId, child.txId, 'ee'.repeat(32)] };
    const { transactions } = await handlers().findTransactions(request(ids), context);
    expect(transactions).toMatchObject([
      { status: 'expired', rejectionCode: 'VAL_TIME_003' },
      { status: 'rejected', rejectionCode: 'VAL_CHAIN_001' },
    ]);
    await world.engine.setMode(registerId, 'Running');
  });

  it('seals', async () => {
    const registerId = world.register.id;
    const seal = { registerId, maxTransactions: 0, timeoutMs: 2_000 };
    await world.submit(world.sign({ payload: { seal: 1 } }).text);
    expect([1, 2]).toContain((await handlers().seal(request(seal), context)).outcome);
    await expect(handlers().seal(request({ ...seal, registerId: 'x' }), context)).rejects.toMatchObject({
      code: 'REGISTER_NOT_FOUND',
    });
  });
});

describe('modes', () => {
  it('follow the rules of start, stop, pause and resume', () => {
    expect(nextMode('Running', 'pause')).toBe('Paused');
    expect(nextMode('Paused', 'stop')).toBe('Stopped');
    expect(nextMode('Stopped', 'start')).toBe('Running');
    expect(() => nextMode('Stopped', 'pause')).toThrow();
    expect(() => nextMode('Halted', 'start')).toThrow();
    expect(uptimeText(90_061_000)).toBe('1.01:01:01');
  });
});

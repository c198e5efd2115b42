import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { otherRegister, serviceCaller, TestServer } from '../../testing/test-server.ts';
import { registerId, userKey } from '../../testing/world.ts';

const served = new TestServer();
const { world } = served;
beforeAll(() => served.open());
afterAll(() => served.close());

const post = (path: string, body: unknown) => served.send('POST', `/api/validation/${path}`, body);

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

describe('adding a transaction', () => {
  /** The earlier shape of a signed submission. */
  function drafted(over: object = {}) {
    const submission = JSON.parse(world.sign().text);
    const [signature] = submission.Signatures;
    return {
      txId: submission.TransactionId,
      registerId: submission.RegisterId,
      senderAddress: userKey.address,
      payload: submission.Payload,
      timestamp: submission.CreatedAt,
      ...(submission.BlueprintId && { blueprintId: submission.BlueprintId }),
      ...(submission.ActionId && { actionId: submission.ActionId }),
      ...(submission.Metadata && { metadata: submission.Metadata }),
      signature: {
        publicKey: signature.PublicKey,
        signatureValue: signature.SignatureValue,
        algorithm: signature.Algorithm,
      },
      ...over,
    };
  }

  it('equals the generic submission', async () => {
    const transaction = drafted();
    const answer = await post('transactions/add', { transaction });
    expect([answer.statusCode, answer.json()]).toEqual([
      200,
      { accepted: true, memPoolSize: 1, estimatedInclusionTime: '00:00:01' },
    ]);
    expect(world.register.pool.find(transaction.txId)?.stage).toBe('waiting');
    expect((await post('transactions/add', { transaction })).json()).toMatchObject({ memPoolSize: 1 });
  });

  it('is accepted by a member even when the mempool size is unavailable', async () => {
    const transaction = drafted({ registerId: otherRegister });
    served.beyond.forward = async () => ({ status: 200, body: {}, retryAfterSeconds: 0 });
    served.beyond.findRules = async () => world.register.state.ledger;
    const request: string[] = [];
    const away = new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'away');
    served.peerClients.report = async (validatorId) => {
      request.push(validatorId);
      if (validatorId === 'validator-1') throw away;
      return { registers: [{ memPoolSize: 7 }] } as never;
    };
    const add = async () => (await post('transactions/add', { transaction })).json();
    expect(await add()).toMatchObject({ accepted: true, memPoolSize: 7 });
    expect(request).toEqual(['validator-1', 'validator-2']);
    served.peerClients.report = () => Promise.reject(away);
    served.beyond.findRules = () => Promise.reject(away);
    expect(await add()).toEqual({ accepted: true, memPoolSize: 0, estimatedInclusionTime: '00:00:00' });
  });

  it('is forwarded to another validator while this one drains', async () => {
    await served.world.engine.drain.begin();
    const answer = await post('transactions/add', { transaction: drafted() });
    expect([answer.statusCode, answer.json().code]).toEqual([503, 'VALIDATOR_DRAINING']);
    expect(answer.headers['x-retry-elsewhere']).toBe('true');
    await served.world.engine.drain.end();
  });

  it.each([
    ['another payload', { payload: { other: 1 } }, 400, 'VAL_SIG_002'],
    ['a wrong hash', { payloadHash: '00'.repeat(32) }, 400, 'VAL_HASH_001'],
    ['another sender than the signer', { senderAddress: 'w1stranger' }, 403, 'SENDER_NOT_AUTHORIZED'],
    ['no sender', { senderAddress: undefined }, 400, 'VAL_STRUCT_001'],
    ['no signature', { signature: undefined }, 400, 'VAL_STRUCT_005'],
    ['a register that there is not', { registerId: 'ef'.repeat(16) }, 404, 'REGISTER_NOT_FOUND'],
    ['an unknown predecessor', { previousTxId: 'ee'.repeat(32) }, 422, 'VAL_CHAIN_001'],
  ])('is refused like the generic submission: %s', async (_what, over, status, code) => {
    const answer = await post('transactions/add', { transaction: drafted(over) });
    expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
    expect(answer.json().path).toBe('/api/validation/transactions/add');
  });

  it.each(['', 'null', '[]', '{}', '{"transaction":7}', '{"transaction":{"txId":"a","txId":"b"}}'])(
    'refuses %s',
    async (body) => {
      expect((await post('transactions/add', body)).statusCode).toBe(400);
    },
  );
});

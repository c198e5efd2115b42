import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { turnsDefinition } from '#core/blueprint/testing/turns.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { LookupRequestSchema } from '#protos/gen/chancery/register/v1/register_pb.js';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { contextOf, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { publish, turn } from '../../testing/turns.ts';
import { ledgerHandlers } from '../service/rpc.ts';

const [asker, clerk] = [testKey(2), testKey(3)];
const instance = (n: number) => `6f3a2c10-0000-4000-8000-00000000000${n}`;

describe('the steps of a docket', () => {
  let register: TestRegister;
  let registerId: string;
  let pin: string;
  beforeAll(async () => {
    register = await startTestRegister('docket_steps');
    registerId = await register.createRegister();
    pin = await publish(register, registerId, turnsDefinition(clerk.walletAddress));
    await register.seal(registerId);
  });
  afterAll(() => register.stop());

  type Sealed = ReturnType<typeof transaction>;
  const write = async (...transactions: Sealed[]) => {
    const bundle = buildDocket(await register.state(registerId), transactions, register.members);
    const result = await register.ledger.writeDocket(bundle);
    return result.outcome === 'invalid' ? result.violations.map(({ code }) => code) : result.outcome;
  };
  const step = (n: number, seq: number, previous: string, more: object = {}) =>
    turn(registerId, {
      pin,
      instanceId: instance(n),
      askerAddress: asker.walletAddress,
      seq,
      key: seq % 2 === 0 ? asker : clerk,
      previous,
      ...more,
    });
  const plain = (payload: object, previousTransactionId?: string) =>
    transaction({ registerId, payload, previousTransactionId });

  it('are stored when they follow, in one docket or in several', async () => {
    const first = step(1, 0, pin);
    const second = step(1, 1, first.txId);
    const third = step(1, 2, second.txId);
    expect(await write(first, plain({ n: 1 }), second)).toBe('stored');
    expect(await write(third)).toBe('stored');
  });

  it('are refused when they do not, with all of the docket', async () => {
    const first = step(2, 0, pin);
    expect(await write(first)).toBe('stored');
    const previous = first.txId;
    const next = step(2, 1, previous);
    const cases: [string, string, Sealed[]][] = [
      ['a plain transaction behind a step', 'VAL_BP_003', [plain({ n: 2 }, previous)]],
      ['one behind a step of the docket', 'VAL_BP_003', [next, plain({ n: 3 }, next.txId)]],
      ['another sender', 'VAL_BP_002', [step(2, 1, previous, { key: asker })]],
      ['a wrong state', 'VAL_BP_003', [step(2, 1, previous, { wrong: { current: [{ actionId: 1 }] } })]],
      ['no starting action', 'VAL_BP_001', [step(3, 1, pin, { wrong: { seq: 0 } })]],
      ['an unknown pin', 'VAL_BP_VERSION_001', [step(3, 0, pin, { pin: 'e'.repeat(64) })]],
    ];
    for (const [what, code, transactions] of cases) {
      expect([what, await write(plain({ what }), ...transactions)]).toEqual([what, [code]]);
    }
    expect(await write(step(2, 1, previous))).toBe('stored');
  });

  it('may not name a publication of the same docket', async () => {
    const other = await publish(register, registerId, turnsDefinition(clerk.walletAddress, 'Together'));
    const [publication] = register.validators.take(registerId, 1);
    if (publication === undefined) throw new Error('the publication is pending');
    const first = step(4, 0, other, { pin: other });
    const both = [{ ...publication, txId: other }, first];
    expect(await write(...both)).toEqual(['VAL_BP_VERSION_001']);
    expect(await write({ ...publication, txId: other })).toBe('stored');
    expect(await write(first)).toBe('stored');
  });

  it('are answered to validators, and plain predecessors cost no further statement', async () => {
    const first = step(5, 0, pin);
    const other = plain({ n: 50 });
    expect(await write(first, other)).toBe('stored');
    const { database, ledger, runtime } = register;
    const { lookup } = ledgerHandlers({
      database,
      clock: runtime.clock,
      writeDocket: ledger.writeDocket,
      segments: ledger.segments,
      verifier: createVerifier(nodeEd25519()),
    });
    const ask = async (items: object[]) => {
      const request = create(LookupRequestSchema, { items: items.map((one) => ({ registerId, ...one })) });
      return (await lookup(request, contextOf('validator-0'))).answers;
    };
    const unknown = 'd'.repeat(64);
    expect(
      await ask([
        { transactionId: unknown, previousTransactionId: first.txId, pin },
        { transactionId: unknown, previousTransactionId: other.txId, pin: other.txId },
        { transactionId: unknown, previousTransactionId: pin, pin: 'x' },
      ]),
    ).toMatchObject([
      { previousRouting: JSON.parse(Buffer.from(first.record).toString()).metadata.routing, pinKnown: true },
      { previousKnown: true, previousRouting: '', pinKnown: false },
      { previousKnown: true, previousType: 'Control', previousRouting: '', pinKnown: false },
    ]);
    const statements = async (items: object[]) => {
      const { connect } = database.pool;
      let count = 0;
      database.pool.connect = function counted(...given: unknown[]) {
        count += 1;
        return Reflect.apply(connect, database.pool, given);
      } as typeof connect;
      try {
        await ask(items);
      } finally {
        database.pool.connect = connect;
      }
      return count;
    };
    /** Jobs of the service use the same pool, so the least of some counts is that of the question. */
    const least = async (previousTransactionId: string) => {
      const counts: number[] = [];
      for (let n = 0; n < 5; n++)
        counts.push(await statements([{ transactionId: unknown, previousTransactionId }]));
      return Math.min(...counts);
    };
    const ofPlain = await least(other.txId);
    const ofStep = await least(first.txId);
    expect([ofPlain, ofStep > ofPlain]).toEqual([1, true]);
  });
});

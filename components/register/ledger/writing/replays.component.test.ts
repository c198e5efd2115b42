import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { findReplayKey } from '#core/ledger/replay.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import { LookupRequestSchema } from '#protos/gen/chancery/register/v1/register_pb.js';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { service, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { bodyOf, type TransactionOptions, transaction } from '../../testing/sealed.ts';
import type { SealedTransaction } from '../dockets/docket.ts';
import { ledgerHandlers } from '../service/rpc.ts';

describe('replay protection of Actions: sender, payload and predecessor', () => {
  let register: TestRegister;
  let registerId: string;
  let minutes = 0;
  let notes = 0;
  beforeAll(async () => {
    register = await startTestRegister('replays');
    registerId = await register.createRegister();
  });
  afterAll(() => register.stop());

  /** Each transaction has its own id, whatever its content. */
  function action(payload: unknown, overrides: Partial<TransactionOptions> = {}) {
    minutes += 1;
    const createdAt = `2026-11-21T12:${String(minutes % 60).padStart(2, '0')}:00.0000000+00:00`;
    return transaction({ registerId, payload, createdAt, metadata: { n: String(minutes) }, ...overrides });
  }
  const filler = (count: number) =>
    Array.from({ length: count }, () => {
      notes += 1;
      return action({ filler: notes });
    });
  async function write(...transactions: SealedTransaction[]) {
    const bundle = buildDocket(await register.state(registerId), transactions, register.members);
    const body = bodyOf(bundle);
    const answer = await register.call('POST', `/api/registers/${registerId}/dockets`, {
      token: 'validator',
      body,
    });
    return [answer.status, answer.body.code];
  }
  const refusal = [422, 'VAL_REPLAY_001'];
  const stored = [201, undefined];

  it('refuses two equal Actions in one docket, small or large, and writes none of it', async () => {
    const before = (await register.state(registerId)).height;
    expect(await write(action({ twice: 1 }), action({ twice: 1 }))).toEqual(refusal);
    expect(await write(...filler(5), action({ twice: 2 }), ...filler(5), action({ twice: 2 }))).toEqual(
      refusal,
    );
    expect((await register.state(registerId)).height).toBe(before);
    expect(await write(action({ twice: 1 }), action({ twice: 2 }))).toEqual(stored);
  });

  it('refuses an equal Action in a later docket, small or large', async () => {
    expect(await write(action({ later: 1 }))).toEqual(stored);
    expect(await write(...filler(12), action({ later: 2 }))).toEqual(stored);
    for (const again of [1, 2]) {
      expect(await write(action({ later: again }))).toEqual(refusal);
      expect(await write(...filler(12), action({ later: again }))).toEqual(refusal);
    }
  });

  it('accepts the same payload of other senders, after other predecessors, and on other registers', async () => {
    const parent = action({ vote: 'yes' });
    const child = action({ vote: 'yes' }, { previousTransactionId: parent.txId });
    const grandchild = action({ vote: 'yes' }, { previousTransactionId: child.txId });
    const theirs = action({ vote: 'yes' }, { key: testKey(9) });
    expect(await write(parent, child, grandchild, theirs)).toEqual(stored);
    const elsewhere = registerId;
    registerId = await register.createRegister('Another');
    expect(await write(action({ vote: 'yes' }))).toEqual(stored);
    registerId = elsewhere;
  });

  it('compares Actions after a predecessor that may have many successors', async () => {
    const path = `/api/registers/${registerId}/dockets/0`;
    const { body } = await register.call('GET', path, { token: 'admin' });
    const [genesis] = body.transactionIds as string[];
    const behind = { previousTransactionId: genesis };
    expect(await write(action({ start: 1 }, behind), action({ start: 2 }, behind))).toEqual(stored);
    expect(await write(action({ start: 1 }, behind))).toEqual(refusal);
    expect(await write(action({ start: 1 }))).toEqual(stored);
  });

  it('leaves a predecessor with one successor to its own rule', async () => {
    const parent = action({ only: 'parent' });
    const follow = (payload: unknown) => action(payload, { previousTransactionId: parent.txId });
    expect(await write(parent, follow({ only: 'child' }))).toEqual(stored);
    expect(await write(follow({ only: 'child' }))).toEqual([422, 'VAL_CHAIN_FORK']);
  });

  it('allows equal control transactions', async () => {
    const owner = testKey(1);
    const control = () => action({ control: 1 }, { type: 'Control', key: owner });
    expect(await write(control(), control())).toEqual(stored);
    expect(await write(control())).toEqual(stored);
  });

  it('answers a repeated docket as a replay, and refuses a repeated transaction', async () => {
    const one = action({ replayed: 1 });
    const bundle = buildDocket(await register.state(registerId), [one], register.members);
    const post = () =>
      register.call('POST', `/api/registers/${registerId}/dockets`, {
        token: 'validator',
        body: bodyOf(bundle),
      });
    expect([(await post()).status, (await post()).status]).toEqual([201, 200]);
    expect(await write(one)).toEqual([422, 'VAL_CHAIN_004']);
  });

  describe('Lookup', () => {
    const context: RpcContext = {
      peer: { clientId: 'validator-0', spiffeId: 'spiffe://test/service/validator-0' },
      caller: { ...service, clientId: 'validator-0', scopes: ['dockets:write'] },
      signal: new AbortController().signal,
    };
    const ask = async (...items: { replayKey?: string; transactionId?: string; registerId?: string }[]) => {
      const { database } = register;
      const { writeDocket, segments } = register.ledger;
      const handlers = ledgerHandlers({
        database,
        writeDocket,
        segments,
        verifier: createVerifier(nodeEd25519()),
        clock: register.runtime.clock,
      });
      const questions = items.map((item) => ({ registerId, ...item }));
      const { answers = [] } = await handlers.lookup(
        create(LookupRequestSchema, { items: questions }),
        context,
      );
      return answers.map((answer) => answer.sealedReplay);
    };
    const keyOf = (sealed: SealedTransaction) => findReplayKey(parseRecord(sealed.record)) ?? '';

    it('names the transaction with a key in that register', async () => {
      const one = action({ asked: 1 });
      expect(await write(one)).toEqual(stored);
      const key = keyOf(action({ asked: 1 }));
      const other = keyOf(action({ asked: 2 }));
      const elsewhere = 'f'.repeat(32);
      expect(
        await ask(
          { replayKey: key },
          { replayKey: other },
          {},
          { replayKey: key, registerId: elsewhere },
          { replayKey: key, transactionId: one.txId },
        ),
      ).toEqual([one.txId, '', '', '', one.txId]);
    });

    it('refuses a malformed key instead of not finding it', async () => {
      for (const replayKey of ['x', 'ab', 'AB'.repeat(16), 'ab'.repeat(32)]) {
        await expect(ask({ replayKey })).rejects.toMatchObject({ kind: 'invalid' });
      }
    });

    it('reads the index, not the table', async () => {
      const client = await register.database.pool.connect();
      try {
        await client.query('begin');
        await client.query('set local enable_seqscan = off');
        const { rows } = await client.query(`explain select same.tx_id
          from unnest(array['\\x00'::bytea]) with ordinality as q(replay_key, ord)
          left join registers r on r.register_id = 'x'
          left join transaction_ids same on same.register_no = r.register_no and same.segment = any('{0}')
            and same.replay_key = q.replay_key`);
        expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('transaction_ids_replay');
      } finally {
        await client.query('rollback');
        client.release();
      }
    });
  });
});

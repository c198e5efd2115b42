import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { userKey, World } from '../../testing/world.ts';

const world = new World();
beforeAll(async () => {
  await world.open();
  await world.begin();
});
afterAll(() => world.remove());

/** All accepted transactions are stored. */
function settled(): Promise<unknown> {
  return waitFor(() => world.register.pool.isEmpty && world.register.facts.unstored === 0, {
    what: 'everything to be stored',
  });
}

describe('genesis', () => {
  it('comes first: nothing else is accepted until it is on disk', async () => {
    const fresh = new World();
    try {
      await fresh.open();
      const genesis = fresh.genesis();
      fresh.ledger.before = (call) => {
        if (call === 'lookup') throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'gone');
      };
      expect((await fresh.submit(genesis.text, true)).status).toBe(503);
      fresh.ledger.before = () => {};
      const early = fresh.sign();
      expect(await fresh.submit(early.text)).toMatchObject({
        status: 503,
        body: { code: 'REGISTER_NOT_READY' },
      });
      expect((await fresh.submit(genesis.text, true)).status).toBe(200);
      expect((await fresh.submit(early.text)).status).toBe(200);
      await fresh.sealed(2);
    } finally {
      await fresh.remove();
    }
  });

  it('is accepted only from the register service, signed by the system key, naming this validator', async () => {
    const fresh = new World();
    try {
      await fresh.open();
      const genesis = fresh.genesis();
      expect(await fresh.submit(genesis.text)).toMatchObject({ status: 403, body: { code: 'VAL_PERM_002' } });
      const foreign = JSON.parse(genesis.text);
      foreign.Signatures[0].PublicKey = userKey.publicKey;
      expect(await fresh.submit(JSON.stringify(foreign), true)).toMatchObject({ status: 403 });
      const action = fresh.sign();
      expect(await fresh.submit(action.text, true)).toMatchObject({ status: 404 });
      expect((await fresh.submit(genesis.text, true)).status).toBe(200);
      await fresh.sealed(1);
      expect(await fresh.submit(genesis.text, true)).toMatchObject({
        status: 200,
        body: { alreadyKnown: true },
      });
      const [docket] = fresh.ledger.dockets;
      expect(docket?.docket.header.timestamp).toBe(JSON.parse(genesis.text).CreatedAt);
    } finally {
      await fresh.remove();
    }
  });
});

describe('transactions in flight', () => {
  it('can be awaited until they are on disk or refused', async () => {
    await world.engine.setMode(world.register.id, 'Paused');
    const good = world.sign({ payload: { underway: 1 } });
    const bad = world.sign({ previous: 'ef'.repeat(32) });
    const answers = [world.submit(good.text), world.submit(bad.text)];
    const { admission } = world.engine;
    await waitFor(async () => {
      await admission.settled(world.register.id, [good.txId, bad.txId, 'ab'.repeat(32)]);
      return world.register.pool.find(good.txId) !== undefined;
    });
    expect(world.register.pool.find(good.txId)?.segment).toBeGreaterThan(0);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 422]);
    await world.engine.setMode(world.register.id, 'Running');
    await settled();
  });

  it('keep only their own bytes in memory', async () => {
    await world.engine.setMode(world.register.id, 'Paused');
    const { txId, text } = world.sign({ payload: { kept: 1 } });
    await world.submit(text);
    const transaction = world.register.pool.find(txId)?.transaction;
    expect(transaction?.record.buffer.byteLength).toBe(transaction?.sizeBytes);
    expect(transaction?.payload.buffer).toBe(transaction?.record.buffer);
    await world.engine.setMode(world.register.id, 'Running');
    await settled();
  });
});

import { afterEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { judgeDocket } from '../../chain/building/judge.ts';
import type { SignerBatch } from '../../chain/sealing/ports.ts';
import { testKey } from '../../testing/keys.ts';
import { ownerKey, World } from '../../testing/world.ts';

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.remove();
});

async function beginWorld(): Promise<World> {
  const world = new World();
  worlds.push(world);
  await world.open();
  await world.begin();
  return world;
}

async function restart(world: World): Promise<void> {
  await world.close();
  world.ledger.before = () => {};
  await world.open();
}

const payload = { vote: 'yes' };
let minute = 0;
/** The same payload in a transaction of its own. */
function replayTombstone(world: World, draft: object = {}) {
  minute += 1;
  return world.sign({ payload, createdAtMs: Date.now() - minute * 60_000, ...draft });
}
const refusal = { status: 422, body: { code: 'VAL_REPLAY_001', errors: [{ field: 'PayloadHash' }] } };

describe('an Action with the replay key of another one', () => {
  it('is refused while the first one waits, is being sealed, and after it is sealed', async () => {
    const world = await beginWorld();
    await world.engine.setMode(world.register.id, 'Paused');
    const first = replayTombstone(world);
    expect((await world.submit(first.text)).status).toBe(200);
    expect(await world.submit(replayTombstone(world).text)).toMatchObject(refusal);
    const { promise, resolve } = Promise.withResolvers<void>();
    world.ledger.before = (call) => (call === 'write' ? promise : undefined);
    await world.engine.setMode(world.register.id, 'Running');
    await waitFor(() => world.register.facts.unstored === 1);
    expect(await world.submit(replayTombstone(world).text)).toMatchObject(refusal);
    resolve();
    await world.sealed(2);
    await waitFor(() => world.register.facts.unstored === 0);
    expect(await world.submit(replayTombstone(world).text)).toMatchObject(refusal);
    await restart(world);
    expect(await world.submit(replayTombstone(world).text)).toMatchObject(refusal);
    expect(await world.submit(first.text)).toMatchObject({ status: 200, body: { alreadyKnown: true } });
    expect(world.register.status).toBe('Running');
  });

  it('is refused in the batch of the first one, and exactly one of many is sealed', async () => {
    const world = await beginWorld();
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => world.submit(replayTombstone(world).text)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(new Set(answers.flatMap(({ body }) => body['code'] ?? []))).toEqual(new Set(['VAL_REPLAY_001']));
    await world.sealed(2);
    expect(world.ledger.sealed.size).toBe(2);
  });

  it('does not exist for another sender or behind another predecessor', async () => {
    const world = await beginWorld();
    const first = replayTombstone(world);
    const behind = replayTombstone(world, { previous: first.txId });
    const others = [
      replayTombstone(world, { key: testKey(11) }),
      replayTombstone(world, { key: testKey(12) }),
    ];
    const behindGenesis = replayTombstone(world, { previous: [...world.ledger.sealed.keys()][0] });
    for (const { text } of [first, behind, ...others, behindGenesis]) {
      expect((await world.submit(text)).status).toBe(200);
    }
    await world.sealed(6);
    const again = replayTombstone(world, { previous: [...world.ledger.sealed.keys()][0] });
    expect(await world.submit(again.text)).toMatchObject(refusal);
    const fork = replayTombstone(world, { previous: first.txId });
    expect(await world.submit(fork.text)).toMatchObject({ status: 422, body: { code: 'VAL_CHAIN_FORK' } });
  });

  it('does not exist among control transactions', async () => {
    const world = await beginWorld();
    const control = () => replayTombstone(world, { key: ownerKey, metadata: { Type: 'Control' } });
    for (const { text } of [control(), control()]) expect((await world.submit(text)).status).toBe(200);
    await world.sealed(3);
  });

  it('is accepted when the first one was never sealed', async () => {
    const world = await beginWorld();
    await world.engine.setMode(world.register.id, 'Paused');
    const first = replayTombstone(world);
    await world.submit(first.text);
    world.register.drop({
      registerId: world.register.id,
      txId: first.txId,
      status: 'expired',
      code: 'VAL_TIME_003',
      message: 'gone',
      atMs: Date.now(),
    });
    expect((await world.submit(replayTombstone(world).text)).status).toBe(200);
  });

  it('is refused when the register service is unavailable', async () => {
    const world = await beginWorld();
    world.register.keys.discard();
    world.ledger.before = (call) => {
      if (call === 'lookup') throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'gone');
    };
    expect(await world.submit(replayTombstone(world).text)).toMatchObject({
      status: 503,
      body: { code: 'VAL_CHAIN_TRANSIENT' },
    });
  });

  it('makes a proposed docket invalid', async () => {
    const world = await beginWorld();
    await world.submit(replayTombstone(world).text);
    await world.sealed(2);
    const [genesis, sealed] = world.ledger.dockets;
    const [one] = sealed?.docket.transactions ?? [];
    if (genesis === undefined || sealed === undefined || one === undefined) throw new Error('not sealed');
    const { header } = sealed.docket;
    const twice = { header, transactions: [one, { ...one, txId: 'ab'.repeat(32) }] };
    const head = { height: 1, headHash: header.previousHash, headTimestamp: genesis.docket.header.timestamp };
    const found = judgeDocket({ ...world.register.state, ...head }, twice);
    expect(found.map(({ code }) => code)).toContain('VAL_REPLAY_001');
  });
});

describe('a log that was written before replay protection', () => {
  /** Both are accepted and on disk, as before the comparison of replay keys existed. */
  async function logged(world: World) {
    await world.engine.setMode(world.register.id, 'Paused');
    const [first, second] = [replayTombstone(world), replayTombstone(world)];
    expect((await world.submit(first.text)).status).toBe(200);
    world.register.pool.remove(first.txId);
    expect((await world.submit(second.text)).status).toBe(200);
    return { first, second };
  }

  it('keeps one of two waiting transactions permanently', async () => {
    const world = await beginWorld();
    const { first, second } = await logged(world);
    for (let start = 0; start < 2; start += 1) {
      await restart(world);
      expect([...world.register.pool.waiting()].map(({ txId }) => txId)).toEqual([first.txId]);
      expect(world.register.tombstones.find(second.txId)).toMatchObject({
        status: 'rejected',
        code: 'VAL_REPLAY_001',
      });
    }
    await world.engine.setMode(world.register.id, 'Running');
    await world.sealed(2);
    await restart(world);
    expect(world.register.pool.size).toBe(0);
    expect(world.register.status).toBe('Running');
  });

  it('keeps the one in a docket in progress', async () => {
    const world = await beginWorld();
    const { first, second } = await logged(world);
    world.ledger.before = (call) => (call === 'write' ? new Promise<void>(() => {}) : undefined);
    await world.engine.setMode(world.register.id, 'Running');
    await waitFor(() => world.register.facts.unstored === 1);
    await restart(world);
    await world.sealed(2);
    expect(world.ledger.sealed.has(second.txId)).toBe(true);
    expect(world.register.tombstones.find(first.txId)).toMatchObject({ code: 'VAL_REPLAY_001' });
    expect(world.register.status).toBe('Running');
  });

  it('drops a replay of a sealed transaction, and its descendants', async () => {
    const world = await beginWorld();
    await world.engine.setMode(world.register.id, 'Paused');
    const first = replayTombstone(world);
    const child = world.sign({ previous: first.txId });
    for (const { text } of [first, child]) expect((await world.submit(text)).status).toBe(200);
    const { lookup } = world.ledger;
    world.ledger.lookup = async (queries) =>
      (await lookup(queries)).map((answer, index) => ({
        ...answer,
        sealedReplay: queries[index]?.transactionId === first.txId ? 'ab'.repeat(32) : '',
      }));
    await restart(world);
    expect(world.register.pool.size).toBe(0);
    expect(world.register.tombstones.find(first.txId)).toMatchObject({ code: 'VAL_REPLAY_001' });
    expect(world.register.tombstones.find(child.txId)).toMatchObject({ code: 'VAL_CHAIN_001' });
  });

  it('drops a replay of a sealed transaction also from a docket in progress', async () => {
    const world = await beginWorld();
    const begun: SignerBatch[] = [];
    world.signer.signBatch = (batch) => {
      begun.push(batch);
      return new Promise<never>(() => {});
    };
    const first = replayTombstone(world);
    expect((await world.submit(first.text)).status).toBe(200);
    await waitFor(() => begun.length === 1);
    const { lookup } = world.ledger;
    world.ledger.lookup = async (queries) =>
      (await lookup(queries)).map((answer) => ({ ...answer, sealedReplay: 'ab'.repeat(32) }));
    world.signer.signBatch = (batch) => {
      begun.push(batch);
      return Promise.reject(new AppError('unavailable', 'SIGNER_UNAVAILABLE', 'away'));
    };
    await restart(world);
    expect(begun).toHaveLength(2);
    expect(begun[1]?.messages).toEqual(begun[0]?.messages);
    expect(world.register.pool.size).toBe(0);
    expect(world.register.tombstones.find(first.txId)).toMatchObject({ code: 'VAL_REPLAY_001' });
  });
});

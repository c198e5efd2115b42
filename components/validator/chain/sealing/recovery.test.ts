import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { quickPolicy } from '../../testing/cluster.ts';
import { World } from '../../testing/world.ts';

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.remove();
});

async function openWorld(overrides = {}): Promise<World> {
  const world = new World(overrides);
  worlds.push(world);
  return world.open();
}

async function restart(world: World): Promise<void> {
  await world.close();
  world.signer.before = () => {};
  world.ledger.before = () => {};
  await world.open();
}

/** A request that never returns, as a dying process leaves it. */
const never = () => new Promise<void>(() => {});

describe('after a restart', () => {
  it('accepted and unsealed transactions are sealed', async () => {
    const world = await openWorld();
    await world.begin();
    await world.engine.setMode(world.register.id, 'Paused');
    const drafts = Array.from({ length: 30 }, (_, index) => world.sign({ payload: { index } }));
    await Promise.all(drafts.map(({ text }) => world.submit(text)));
    await restart(world);
    expect(world.register.status).toBe('Paused');
    expect(world.register.pool.size).toBe(30);
    await world.engine.setMode(world.register.id, 'Running');
    await world.sealed(31);
    for (const { txId } of drafts) expect(world.ledger.sealed.has(txId)).toBe(true);
  });

  it('a waiting transaction is dropped whose predecessor got another successor meanwhile', async () => {
    const world = await openWorld();
    await world.begin();
    const first = world.sign({ payload: { first: 1 } });
    await world.submit(first.text);
    await world.sealed(2);
    await world.engine.setMode(world.register.id, 'Paused');
    const second = world.sign({ payload: { second: 1 }, previous: first.txId });
    expect((await world.submit(second.text)).status).toBe(200);
    await world.close();
    const { lookup } = world.ledger;
    world.ledger.lookup = async (queries) => {
      const answers = await lookup(queries);
      return answers.map((answer, index) =>
        queries[index]?.previousTransactionId === first.txId
          ? { ...answer, previousSuccessor: 'f'.repeat(64) }
          : answer,
      );
    };
    await world.open();
    expect(world.register.pool.size).toBe(0);
    expect(world.register.tombstones.find(second.txId)).toMatchObject({ code: 'VAL_CHAIN_FORK' });
  });

  it('a decided and unstored docket is stored unchanged', async () => {
    const world = await openWorld();
    await world.begin();
    world.ledger.before = (call) => (call === 'write' ? never() : undefined);
    const draft = world.sign();
    await world.submit(draft.text);
    await waitFor(() => world.register.facts.unstored === 1);
    const { headHash } = world.register.state;
    await restart(world);
    await world.sealed(2);
    expect(world.ledger.dockets[1]?.docket.header.hash).toBe(headHash);
  });

  it('a docket that was stored without an answer is sent again', async () => {
    const world = await openWorld();
    await world.begin();
    world.ledger.afterWrite = never;
    await world.submit(world.sign().text);
    await world.sealed(2);
    world.ledger.afterWrite = () => {};
    await restart(world);
    await world.submit(world.sign({ payload: { next: 1 } }).text);
    await world.sealed(3);
    expect(world.ledger.dockets).toHaveLength(3);
  });

  for (const type of [1, 2, 3]) {
    it(`sealing continues after a crash while message ${type} was being signed`, async () => {
      const world = await openWorld();
      await world.begin();
      world.signer.signsBatches = false;
      world.signer.before = (request) =>
        request.kind === 'consensus' && request.message.type === type ? never() : undefined;
      const draft = world.sign();
      await world.submit(draft.text);
      await waitFor(() => world.register.facts.step !== 'idle');
      await restart(world);
      await world.sealed(2);
      expect(world.ledger.sealed.has(draft.txId)).toBe(true);
    });

    it(`sealing continues when message ${type} was signed and the answer lost`, async () => {
      const world = await openWorld();
      await world.begin();
      world.signer.signsBatches = false;
      let asked = false;
      const { sign } = world.signer;
      world.signer.sign = async (request) => {
        const signature = await sign(request);
        if (request.kind !== 'consensus' || request.message.type !== type) return signature;
        asked = true;
        await never();
        return signature;
      };
      const draft = world.sign();
      await world.submit(draft.text);
      await waitFor(() => asked);
      world.signer.sign = sign;
      await restart(world);
      await world.sealed(2);
      expect(world.ledger.dockets[1]?.certificate.round).toBe(0);
    });
  }

  it('another round starts when the signer signed a message that the log does not contain', async () => {
    const world = await openWorld();
    await world.begin({ leaderElection: { heartbeatIntervalMs: 100, leaderTimeoutMs: 101 } });
    let isFirst = true;
    world.signer.before = (request) => {
      if (!isFirst || request.kind !== 'consensus' || request.message.type !== 1) return;
      isFirst = false;
      throw new AppError('conflict', 'DOUBLE_SIGN_REFUSED', 'Something else was signed here');
    };
    await world.submit(world.sign().text);
    await world.sealed(2);
    expect(world.ledger.dockets[1]?.certificate.round).toBe(1);
  });

  it('a register begins whose genesis was accepted and not sealed', async () => {
    const world = await openWorld();
    world.ledger.before = (call) => (call === 'write' ? never() : undefined);
    await world.submit(world.genesis().text, true);
    await waitFor(() => world.register.facts.unstored === 1);
    await restart(world);
    await world.sealed(1);
    expect(world.register.state.height).toBe(1);
  });

  it('nothing is lost when the tail of the log is torn', async () => {
    const world = await openWorld();
    await world.begin();
    await world.engine.setMode(world.register.id, 'Paused');
    const draft = world.sign();
    await world.submit(draft.text);
    await world.close();
    const directory = join(world.directory, 'log');
    const name = (await readdir(directory)).sort().at(-1) ?? '';
    const bytes = await readFile(join(directory, name));
    await writeFile(join(directory, name), Buffer.concat([bytes, Buffer.from('BtChxxxx')]));
    await world.open();
    expect(world.register.pool.size).toBe(1);
  });

  async function sealSome(world: World, count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const already = world.ledger.sealed.size;
      await world.submit(world.sign({ payload: { index: already } }).text);
      await world.sealed(already + 1);
    }
  }

  it('a register service that was restored from an older state gets its dockets back', async () => {
    const world = await openWorld();
    await world.begin();
    await sealSome(world, 12);
    await waitFor(() => world.register.facts.storedHeight === world.ledger.dockets.length);
    const hashes = world.ledger.dockets.map(({ docket }) => docket.header.hash);
    await world.close();
    await world.ledger.restoreTo(4);
    await world.open();
    await waitFor(() => world.ledger.dockets.length === hashes.length);
    expect(world.ledger.dockets.map(({ docket }) => docket.header.hash)).toEqual(hashes);
    expect(world.register.status).toBe('Running');
    await sealSome(world, 1);
    expect(world.ledger.dockets.length).toBe(hashes.length + 1);
  });

  it('a register halts with a reason where the log lacks lost dockets, and others are served', async () => {
    const world = await openWorld({ segmentBytes: 4_000, retainBytes: 8_000 });
    await world.begin();
    await sealSome(world, 15);
    await waitFor(() => world.register.facts.storedHeight === world.ledger.dockets.length);
    const stored = world.ledger.dockets.length;
    await world.close();
    await world.ledger.restoreTo(1);
    await world.open();
    expect(world.register.status).toBe('Halted');
    expect(world.register.facts.haltedBecause).toBe(
      `the register service lost dockets 1 to ${stored - 1}, and the log of this validator lacks docket 1; restore its database`,
    );
    const answer = await world.submit(world.sign({ payload: { after: true } }).text);
    expect(answer.status).toBe(503);
    expect(world.ledger.dockets.length).toBe(1);
    expect(() => world.engine.assertWorking()).not.toThrow();
  });

  it('a register halts when the restored state is another chain', async () => {
    const world = await openWorld();
    await world.begin();
    await sealSome(world, 6);
    await waitFor(() => world.register.facts.storedHeight === world.ledger.dockets.length);
    await world.close();
    await world.ledger.restoreTo(4);
    const { writeDocket } = world.ledger;
    world.ledger.writeDocket = async (sealed) => ({
      outcome: 'divergent',
      height: sealed.docket.header.docketNumber + 1,
      refusals: [],
    });
    await world.open();
    await waitFor(() => world.register.status === 'Halted');
    expect(world.register.facts.haltedBecause).toContain('refused by the register service');
    world.ledger.writeDocket = writeDocket;
  });

  it('the log stays within bounds and keeps all live entries', async () => {
    const world = await openWorld({ segmentBytes: 20_000, retainBytes: 60_000 });
    await world.begin();
    await world.engine.setMode(world.register.id, 'Paused');
    const kept = Array.from({ length: 10 }, (_, index) => world.sign({ payload: { kept: index } }));
    for (const { text } of kept) await world.submit(text);
    for (let index = 0; index < 120; index += 1) {
      await world.engine.setMode(world.register.id, index % 2 === 0 ? 'Stopped' : 'Paused');
      const { text } = world.sign({ payload: { more: index, blob: 'z'.repeat(400) } });
      if (index % 2 === 1) await world.submit(text);
    }
    const waiting = world.register.pool.size;
    await restart(world);
    expect(world.register.pool.size).toBe(waiting);
    for (const { txId } of kept) expect(world.register.pool.find(txId)).toBeDefined();
  });
});

describe('while it runs', () => {
  it('dockets are stored in order through an outage of the register service, at most 16 ahead', async () => {
    const world = await openWorld();
    await world.begin({ consensus: { docketBuildIntervalMs: 10 } });
    let isDown = true;
    world.ledger.before = (call) => {
      if (call === 'write' && isDown) throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'gone');
    };
    for (let index = 0; index < 40; index += 1) {
      await world.submit(world.sign({ payload: { index } }).text);
      const { unstored } = world.register.facts;
      expect(unstored).toBeLessThanOrEqual(16);
      if (unstored < 16) await waitFor(() => world.register.pool.size === 0);
    }
    expect(world.register.facts.unstored).toBe(16);
    isDown = false;
    await world.sealed(41);
    expect(world.ledger.dockets.map(({ docket }) => docket.header.docketNumber)).toEqual(
      world.ledger.dockets.map((_, index) => index),
    );
  });

  it('a register halts whose docket the register service calls divergent', async () => {
    const world = await openWorld();
    await world.begin();
    world.ledger.writeDocket = async () => ({ outcome: 'divergent', height: 2, refusals: [] });
    await world.submit(world.sign().text);
    await waitFor(() => world.register.status === 'Halted');
    const answer = await world.submit(world.sign({ payload: { late: 1 } }).text);
    expect(answer).toMatchObject({ status: 503, body: { code: 'REGISTER_NOT_READY' }, retryAfterSeconds: 5 });
  });

  it('a validator stops once its identity is fenced', async () => {
    const world = await openWorld();
    await world.begin();
    world.signer.before = () => {
      throw new AppError('forbidden', 'SIGNER_FENCED', 'A newer holder signs');
    };
    expect((await world.submit(world.sign().text)).status).toBe(200);
    await waitFor(() => {
      try {
        world.engine.assertWorking();
        return false;
      } catch {
        return true;
      }
    });
    expect(world.ledger.dockets).toHaveLength(1);
    const late = await world.submit(world.sign({ payload: { late: 1 } }).text);
    expect(late).toMatchObject({ status: 503, body: { code: 'SEALING_STOPPED' } });
  });

  it('submissions are refused when the log cannot be written, and all accepted ones survive a restart', async () => {
    const world = await openWorld({ segmentBytes: 1 });
    await world.begin(quickPolicy);
    const before = world.sign({ payload: { before: 1 } });
    expect((await world.submit(before.text)).status).toBe(200);
    await world.sealed(2);
    const log = join(world.directory, 'log');
    const away = join(world.directory, 'away');
    await rename(log, away);
    const drafts = Array.from({ length: 4 }, (_, index) => world.sign({ payload: { index } }));
    const answers: number[] = [];
    for (const { text } of drafts) answers.push((await world.submit(text)).status);
    expect(answers.at(-1)).toBe(503);
    await world.close();
    await rename(away, log);
    await world.open();
    await world.sealed(2 + answers.filter((status) => status === 200).length);
    for (const [index, { txId }] of drafts.entries()) {
      if (answers[index] === 200) expect(world.ledger.sealed.has(txId)).toBe(true);
    }
  });

  it('sealing on demand reports its outcome', async () => {
    const world = await openWorld();
    await world.begin();
    expect(await world.register.seal(undefined, 100)).toMatchObject({ outcome: 'nothing-pending' });
    await world.engine.setMode(world.register.id, 'Paused');
    for (let index = 0; index < 5; index += 1) await world.submit(world.sign({ payload: { index } }).text);
    expect(await world.register.seal(undefined, 100)).toMatchObject({ outcome: 'not-running' });
    world.ledger.before = (call) => (call === 'write' ? never() : undefined);
    await world.engine.setMode(world.register.id, 'Running');
    expect(await world.register.seal(2, 50)).toMatchObject({ outcome: 'timeout', docketNumber: 1 });
    await restart(world);
    await world.sealed(6);
  });
});

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { proposerOf } from '#core/ledger/consensus.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { Cluster, type Member } from '../../testing/cluster.ts';
import { World } from '../../testing/world.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function openCluster(size: number): Promise<Cluster> {
  const cluster = new Cluster(size);
  closers.push(() => cluster.remove());
  await cluster.open();
  await cluster.begin();
  return cluster;
}

async function openWorld(): Promise<World> {
  const world = new World();
  closers.push(() => world.remove());
  await world.open();
  await world.begin();
  return world;
}

/** The proposers of the dockets from a height on. */
function proposersFrom(cluster: Cluster, from: number): string[] {
  const ids = cluster.members.map(({ id }) => id);
  return cluster.ledger.dockets.slice(from).map(({ docket, certificate }) => {
    return proposerOf(ids, docket.header.docketNumber, certificate.round);
  });
}

const drained = (member: Member) =>
  waitFor(() => member.engine.drain.facts.state === 'Drained', { what: 'drained', deadlineMs: 20_000 });

describe('a draining validator', () => {
  it('transfers its transactions, accepts and proposes nothing, and votes', async () => {
    const cluster = await openCluster(4);
    const leaving = cluster.member(1);
    const held = await Promise.all(
      Array.from({ length: 20 }, (_, index) => cluster.submit(leaving, { payload: { index } })),
    );
    expect(await leaving.engine.drain.begin()).toMatchObject({ alone: [] });
    const refused = await cluster.submitTo(leaving, cluster.sign({ payload: { late: 1 } }).text);
    expect(refused).toMatchObject({ status: 503, body: { code: 'VALIDATOR_DRAINING' } });
    await drained(leaving);
    for (const { txId } of held) expect(cluster.ledger.sealed.has(txId)).toBe(true);
    const height = cluster.ledger.dockets.length;
    for (let round = 0; round < 8; round += 1) {
      const { txId } = await cluster.submit(cluster.member(0), { payload: { round } });
      await waitFor(() => cluster.ledger.sealed.has(txId), { what: 'a transaction', deadlineMs: 20_000 });
    }
    await cluster.agreed();
    expect(cluster.ledger.dockets.length).toBeGreaterThanOrEqual(height + 8);
    expect(proposersFrom(cluster, height)).not.toContain(leaving.id);
    const votes = cluster.ledger.dockets.slice(height).flatMap(({ certificate }) => certificate.signatures);
    expect(votes.map(({ validatorId }) => validatorId)).toContain(leaving.id);
  }, 60_000);

  it('is skipped: others begin the next round at once, also where every vote is needed', async () => {
    const cluster = await openCluster(3);
    const leaving = cluster.member(2);
    await leaving.engine.drain.begin();
    await waitFor(() => cluster.member(0).engine.peering.isAbsent(leaving.id), { what: 'told' });
    expect(cluster.member(1).engine.peering.isAbsent(leaving.id)).toBe(true);
    for (let round = 0; round < 4; round += 1) {
      const { txId } = await cluster.submit(cluster.member(0), { payload: { round } });
      await waitFor(() => cluster.ledger.sealed.has(txId), { what: 'a transaction', deadlineMs: 20_000 });
    }
    expect(proposersFrom(cluster, 1)).not.toContain(leaving.id);
    await leaving.engine.drain.end();
    await waitFor(() => !cluster.member(0).engine.peering.isAbsent(leaving.id), { what: 'back' });
    await cluster.submit(leaving, { payload: { again: 1 } });
    await cluster.sealed(6);
  }, 60_000);

  it('is still draining after a restart until the drain is ended', async () => {
    const cluster = await openCluster(4);
    const leaving = cluster.member(3);
    const { sinceMs } = await leaving.engine.drain.begin();
    expect((await leaving.engine.drain.begin()).sinceMs).toBe(sinceMs);
    await cluster.stop(leaving);
    await cluster.start(leaving);
    expect(leaving.engine.drain.facts).toMatchObject({ sinceMs });
    expect(leaving.engine.drain.isDraining).toBe(true);
    await drained(leaving);
    expect(await leaving.engine.drain.end()).toMatchObject({ state: 'None', sinceMs: undefined });
    await cluster.stop(leaving);
    await cluster.start(leaving);
    expect(leaving.engine.drain.isDraining).toBe(false);
    await cluster.submit(leaving, { payload: { again: 1 } });
    await cluster.sealed(2);
  }, 60_000);

  it('is persisted when its segment of the log is deleted', async () => {
    const cluster = new Cluster(2);
    closers.push(() => cluster.remove());
    cluster.logSize = { segmentBytes: 65_536, retainBytes: 65_536 };
    await cluster.open();
    await cluster.begin();
    const leaving = cluster.member(1);
    const { sinceMs } = await leaving.engine.drain.begin();
    const segments = () => readdir(join(leaving.directory, 'log'));
    const first = await segments();
    const isGone = async () => (await segments()).every((name) => !first.includes(name));
    for (let index = 0; !(await isGone()) && index < 50; index += 1) {
      const { txId } = await cluster.submit(cluster.member(0), {
        payload: { blob: 'x'.repeat(40_000), index },
      });
      await waitFor(() => cluster.ledger.sealed.has(txId), { what: 'a transaction', deadlineMs: 20_000 });
    }
    expect(await isGone()).toBe(true);
    await cluster.stop(leaving);
    await cluster.start(leaving);
    expect(leaving.engine.drain.facts.sinceMs).toBe(sinceMs);
  }, 60_000);

  it('names registers that only it can seal, keeps their transactions, and seals them afterwards', async () => {
    const world = await openWorld();
    await world.engine.setMode(world.register.id, 'Paused');
    const { txId, text } = world.sign();
    expect((await world.submit(text)).status).toBe(200);
    await world.engine.drain.begin();
    await world.engine.setMode(world.register.id, 'Running');
    expect(world.engine.drain.facts).toMatchObject({
      state: 'Drained',
      waiting: 0,
      alone: [world.register.id],
    });
    expect(world.ledger.sealed.has(txId)).toBe(false);
    await world.engine.drain.end();
    await waitFor(() => world.ledger.sealed.has(txId), { what: 'the transaction' });
  });

  it('completes its round when the process stops, and persists nothing of that', async () => {
    const cluster = await openCluster(4);
    const leaving = cluster.member(0);
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => cluster.submit(leaving, { payload: { index } })),
    );
    await leaving.engine.drain.stop(10_000);
    expect(leaving.engine.drain.facts.inFlight).toBe(0);
    expect(leaving.engine.drain.isDraining).toBe(true);
    await cluster.stop(leaving);
    await cluster.start(leaving);
    expect(leaving.engine.drain.isDraining).toBe(false);
    await cluster.sealed(31);
  }, 60_000);
});

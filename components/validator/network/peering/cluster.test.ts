import { afterEach, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { Cluster, type Member, quickPolicy } from '../../testing/cluster.ts';

const clusters: Cluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

async function openCluster(size: number): Promise<Cluster> {
  const cluster = new Cluster(size);
  clusters.push(cluster);
  return cluster.open();
}

/** The first proposer of the current height. */
function nextProposer(cluster: Cluster): Member {
  const height = cluster.ledger.dockets.length;
  return cluster.member(height % cluster.members.length);
}

/** A pseudo-random sequence of numbers from 0 to 1. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

describe('several validators', { timeout: 40_000 }, () => {
  it.each([2, 4, 7])('%i of them seal one chain, whichever accepts a transaction', async (size) => {
    const cluster = await openCluster(size);
    await cluster.begin();
    for (let index = 0; index < 20; index += 1) {
      await cluster.submit(cluster.member(index % size), { payload: { index } });
    }
    await cluster.sealed(21);
    await cluster.agreed();
    const proposers = new Set(cluster.ledger.dockets.map(({ docket }) => docket.header.validatorAddress));
    expect(proposers.size).toBeGreaterThan(1);
    for (const member of cluster.members) {
      await waitFor(() => member.register.facts.storedHeight === cluster.ledger.dockets.length);
      expect(member.register.pool.size).toBe(0);
      expect(member.messages).toEqual([]);
    }
    const { length } = cluster.ledger.dockets;
    await waitFor(() => cluster.ledger.attestations.length === length * size, { what: 'all attestations' });
  });

  it('tell a member that could not take the genesis of their register within two heartbeats', async () => {
    const cluster = await openCluster(4);
    await cluster.begin(quickPolicy, cluster.members.slice(0, 3));
    const last = () => cluster.member(3).engine.registers.get(cluster.member(0).register.id);
    await waitFor(() => last() !== undefined, { what: 'the register at the fourth', deadlineMs: 3_000 });
    await cluster.agreed();
  });

  it('have a transaction on disk that one of them accepted and cannot seal yet', async () => {
    const cluster = await openCluster(4);
    await cluster.begin();
    for (const member of cluster.members) await member.engine.setMode(member.register.id, 'Paused');
    const { txId } = await cluster.submit(cluster.member(2));
    for (const member of cluster.members) {
      await waitFor(() => (member.register.pool.find(txId)?.segment ?? 0) > 0, {
        what: `it at ${member.id}`,
      });
    }
  });

  it('continue while one is silent, and skip its proposer turns', async () => {
    const cluster = await openCluster(4);
    await cluster.begin();
    await cluster.agreed();
    const silent = nextProposer(cluster);
    await cluster.stop(silent);
    const [other] = cluster.members.filter((member) => member !== silent);
    for (let index = 0; index < 2; index += 1) {
      if (other !== undefined) await cluster.submit(other, { payload: { index } });
      await cluster.sealed(index + 2);
    }
    await cluster.agreed();
    const rounds = cluster.ledger.dockets.map(({ certificate }) => certificate.round);
    expect(Math.max(...rounds)).toBeGreaterThan(0);
    await cluster.start(silent);
    await cluster.submit(silent, { payload: { back: 1 } });
    await cluster.sealed(4);
    await cluster.agreed();
  });

  it('seal nothing with two of four, and continue when one comes back', async () => {
    const cluster = await openCluster(4);
    await cluster.begin();
    await cluster.agreed();
    await cluster.stop(cluster.member(0));
    await cluster.stop(cluster.member(1));
    const submitted = await cluster.submit(cluster.member(2));
    await waitFor(() => cluster.member(3).register.machine.step !== 'idle');
    expect(cluster.ledger.dockets).toHaveLength(1);
    await cluster.start(cluster.member(0));
    await cluster.sealed(2);
    expect(cluster.ledger.sealed.has(submitted.txId)).toBe(true);
    await cluster.agreed();
  });

  it('seal nothing when split in halves, and continue when the network heals', async () => {
    const cluster = await openCluster(4);
    await cluster.begin();
    await cluster.agreed();
    const left = new Set(['validator-0', 'validator-1']);
    cluster.network.reaches = (from, to) => left.has(from) === left.has(to);
    const here = await cluster.submit(cluster.member(0), { payload: { side: 'left' } });
    const there = await cluster.submit(cluster.member(3), { payload: { side: 'right' } });
    for (const member of cluster.members) await waitFor(() => member.register.machine.step !== 'idle');
    expect(cluster.ledger.dockets).toHaveLength(1);
    cluster.network.reaches = () => true;
    await cluster.sealed(3);
    expect([here, there].every(({ txId }) => cluster.ledger.sealed.has(txId))).toBe(true);
    await cluster.agreed();
  });

  it('agree through loss, duplication, delay and reordering', async () => {
    const cluster = await openCluster(4);
    const next = random(7);
    cluster.network.fate = () => {
      const copies = next() < 0.15 ? 0 : next() < 0.2 ? 2 : 1;
      return { delaysMs: Array.from({ length: copies }, () => next() * 40) };
    };
    await cluster.begin();
    for (let index = 0; index < 4; index += 1) {
      await cluster.submit(cluster.member(index % 4), { payload: { index } });
      await cluster.sealed(index + 2);
    }
    await cluster.agreed();
    expect(new Set(cluster.ledger.dockets.map(({ docket }) => docket.header.docketNumber)).size).toBe(
      cluster.ledger.dockets.length,
    );
  });

  it('bring a member up to date that missed many dockets', async () => {
    const cluster = await openCluster(4);
    await cluster.begin();
    await cluster.agreed();
    const away = cluster.member(1);
    cluster.network.reaches = (from, to) => from !== away.id && to !== away.id;
    for (let index = 0; index < 5; index += 1) {
      await cluster.submit(cluster.member(0), { payload: { index } });
      await cluster.sealed(index + 2);
    }
    expect(away.register.state.height).toBe(1);
    cluster.network.reaches = () => true;
    cluster.network.reconnect(away.id);
    await cluster.agreed();
    await cluster.stop(away);
    await cluster.submit(cluster.member(0), { payload: { more: 1 } });
    await cluster.sealed(7);
    await cluster.start(away);
    await cluster.submit(away, { payload: { more: 2 } });
    await cluster.sealed(8);
    await cluster.agreed();
  });

  it('restore a member from the register service when no peer keeps what it missed', async () => {
    const cluster = await openCluster(4);
    await cluster.begin();
    await cluster.agreed();
    const away = cluster.member(2);
    cluster.network.reaches = (from, to) => from !== away.id && to !== away.id;
    const waiting = await cluster.submit(cluster.member(0), { payload: { missed: 0 } });
    await cluster.submitTo(away, waiting.text).catch(() => {});
    for (let index = 1; index < 4; index += 1) {
      await cluster.submit(cluster.member(0), { payload: { missed: index } });
      await cluster.sealed(index + 2);
    }
    for (const member of cluster.members) member.engine.peering.commit = () => undefined;
    cluster.network.reaches = () => true;
    cluster.network.reconnect(away.id);
    await cluster.agreed();
    expect(away.register.pool.size).toBe(0);
    await cluster.submit(away, { payload: { back: 1 } });
    await cluster.sealed(6);
    await cluster.agreed();
  });

  it('reject what repeats a transaction that a member learns of from the register service', async () => {
    const cluster = await openCluster(4);
    await cluster.begin();
    await cluster.agreed();
    const away = cluster.member(2);
    cluster.network.reaches = (from, to) => from !== away.id && to !== away.id;
    const payload = { same: 1 };
    const repeat = await cluster.submit(away, { payload, createdAtMs: Date.now() - 1_000 });
    await cluster.submit(cluster.member(0), { payload });
    await cluster.sealed(2);
    await cluster.submit(cluster.member(0), { payload: { more: 1 } });
    await cluster.sealed(3);
    for (const member of cluster.members) member.engine.peering.commit = () => undefined;
    cluster.network.reaches = () => true;
    cluster.network.reconnect(away.id);
    await cluster.agreed();
    const { tombstones } = away.register;
    await waitFor(() => tombstones.find(repeat.txId)?.code === 'VAL_REPLAY_001', { what: 'its rejection' });
    expect(away.register.pool.find(repeat.txId)).toBeUndefined();
  });

  it('propose nothing while fewer members are operational than the policy requires', async () => {
    const cluster = await openCluster(4);
    await cluster.begin({ ...quickPolicy, validators: { minValidators: 4 } });
    await cluster.agreed();
    const here = cluster.member(0);
    let present = 3;
    for (const { engine } of cluster.members) engine.peering.countOperational = () => present;
    expect(here.register.facts.isWaitingForValidators).toBe(true);
    const { txId } = await cluster.submit(here);
    for (const { register } of cluster.members) await waitFor(() => register.pool.find(txId) !== undefined);
    expect(cluster.members.every(({ register }) => register.machine.step === 'idle')).toBe(true);
    present = 4;
    for (const { register } of cluster.members) register.wake();
    await cluster.sealed(2);
    expect(here.register.facts.isWaitingForValidators).toBe(false);
  });
});

import { afterEach, describe, expect, test } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { reportRegister } from '../../surfaces/reports/report.ts';
import { Cluster, quickPolicy } from '../../testing/cluster.ts';
import { FaultyVolume, fileError } from '../../testing/faulty-volume.ts';
import { World } from '../../testing/world.ts';

const opened: { remove(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.remove();
});

/** A set of one on a volume that the test fills and frees. */
async function openAlone(overrides: ConstructorParameters<typeof World>[0] = {}) {
  const disk = new FaultyVolume();
  const world = await new World({ environment: { storage: disk.storage() }, ...overrides }).open();
  opened.push(world);
  await world.begin(quickPolicy);
  return { world, disk };
}

function sealedOf(dockets: World['ledger']['dockets']): string[] {
  return dockets.flatMap(({ docket }) => docket.header.transactionIds);
}

describe('a validator whose disk is full', () => {
  test('is Paused: it refuses with a reason, keeps what it has, and resumes by itself', async () => {
    const { world, disk } = await openAlone();
    const kept = world.sign();
    expect((await world.submit(kept.text)).status).toBe(200);
    await world.sealed(2);
    disk.capacityBytes = disk.usedBytes;
    const first = world.sign();
    expect(await world.submit(first.text)).toMatchObject({
      status: 503,
      body: { code: 'VALIDATOR_PAUSED', error: 'This validator is Paused: disk full', isValid: false },
      retryAfterSeconds: 5,
    });
    expect(await world.submit(world.sign().text)).toMatchObject({ status: 503 });
    expect(world.engine.conditions()).toMatchObject([{ type: 'Paused', reason: 'disk full' }]);
    expect(() => world.engine.assertDiskSpace()).toThrow('disk full');
    expect(() => world.engine.assertWorking()).not.toThrow();
    const report = reportRegister(world.register, undefined);
    expect(report).toMatchObject({ status: 'Paused', reason: 'disk full', storedHeight: 2 });
    await expect(world.engine.setMode(world.register.id, 'Stopped')).rejects.toMatchObject({
      code: 'VALIDATOR_PAUSED',
    });
    expect(world.ledger.dockets).toHaveLength(2);
    disk.capacityBytes = Number.POSITIVE_INFINITY;
    await waitFor(() => world.engine.conditions().length === 0);
    const later = world.sign();
    await waitFor(async () => (await world.submit(later.text)).status === 200);
    await waitFor(() => world.ledger.sealed.has(later.txId));
    // The submission refused while the disk was full was queued for it. It has one effect, also when it is sent again.
    await waitFor(() => world.ledger.sealed.has(first.txId));
    expect((await world.submit(first.text)).body).toMatchObject({ added: false, alreadyKnown: true });
    expect(new Set(sealedOf(world.ledger.dockets)).size).toBe(sealedOf(world.ledger.dockets).length);
    expect(reportRegister(world.register, undefined)).toMatchObject({ status: 'Running', reason: '' });
  }, 30_000);

  test('exports a metric', async () => {
    const runtime = testRuntime('validator', { level: 'silent' });
    const { world, disk } = await openAlone({ runtime });
    expect(await runtime.telemetry.registry.metrics()).toContain('chancery_validator_disk_full 0');
    disk.capacityBytes = disk.usedBytes;
    await world.submit(world.sign().text);
    expect(await runtime.telemetry.registry.metrics()).toContain('chancery_validator_disk_full 1');
  });

  test('signs no vote that is not logged, and decides no docket partly', async () => {
    const { world, disk } = await openAlone();
    await world.engine.setMode(world.register.id, 'Paused');
    const accepted = world.sign();
    expect((await world.submit(accepted.text)).status).toBe(200);
    // Space for the mode change but not for the following proposal, which must have no effect.
    disk.capacityBytes = disk.usedBytes + 100;
    await world.engine.setMode(world.register.id, 'Running');
    await waitFor(() => world.engine.conditions().length === 1);
    expect(world.ledger.dockets).toHaveLength(1);
    await world.close();
    disk.capacityBytes = Number.POSITIVE_INFINITY;
    await world.open();
    await waitFor(() => world.ledger.sealed.has(accepted.txId));
    expect(sealedOf(world.ledger.dockets).filter((txId) => txId === accepted.txId)).toHaveLength(1);
  }, 30_000);

  test('stops for good on another disk error, and reports that', async () => {
    const { world, disk } = await openAlone();
    disk.beforeForce = () => {
      throw fileError('EIO');
    };
    await world.submit(world.sign().text);
    await waitFor(() => world.engine.conditions().length > 0);
    expect(world.engine.conditions()).toMatchObject([
      { type: 'SealingStopped', reason: 'log failed', message: expect.stringContaining('EIO') },
    ]);
    disk.beforeForce = () => {};
    expect((await world.submit(world.sign().text)).body).toMatchObject({ code: 'SEALING_STOPPED' });
    expect(world.ledger.dockets).toHaveLength(1);
  });
});

describe('one of four whose disk is full', () => {
  test('sends and accepts nothing, the others continue, and it catches up when there is space', async () => {
    const disk = new FaultyVolume();
    const cluster = new Cluster(4);
    opened.push(cluster);
    const full = cluster.member(2);
    cluster.storageOf = (member) => (member === full ? disk.storage() : undefined);
    await cluster.open();
    await cluster.begin();
    await cluster.agreed();
    disk.capacityBytes = disk.usedBytes;
    const refused = await cluster.submitTo(full, cluster.sign({ payload: { at: 'the full one' } }).text);
    expect(refused).toMatchObject({ status: 503, body: { code: 'VALIDATOR_PAUSED' } });
    const heightThen = full.register.state.height;
    const logged = disk.usedBytes;
    for (let index = 0; index < 5; index += 1) {
      await cluster.submit(cluster.member(0), { payload: { index } });
      const sealed = cluster.ledger.sealed.size;
      await waitFor(() => cluster.ledger.sealed.size > sealed || cluster.member(0).register.pool.size === 0);
    }
    await waitFor(() => cluster.ledger.dockets.length >= heightThen + 3);
    expect(full.register.state.height).toBe(heightThen);
    expect(disk.usedBytes).toBeLessThanOrEqual(logged);
    for (const { docket, certificate } of cluster.ledger.dockets.slice(heightThen)) {
      expect(docket.header.validatorAddress).not.toBe(full.signer.key.walletAddress);
      expect(certificate.signatures.map(({ validatorId }) => validatorId)).not.toContain(full.id);
    }
    disk.capacityBytes = Number.POSITIVE_INFINITY;
    await cluster.agreed();
    expect(full.engine.conditions()).toEqual([]);
    // One of the others is down, so its vote is needed again.
    await cluster.stop(cluster.member(3));
    const last = await cluster.submit(cluster.member(1), { payload: { needs: 'the vote of the full one' } });
    await waitFor(() => cluster.ledger.sealed.has(last.txId), { deadlineMs: 20_000 });
    expect(new Set(sealedOf(cluster.ledger.dockets)).size).toBe(sealedOf(cluster.ledger.dockets).length);
  }, 60_000);
});

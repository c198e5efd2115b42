import { afterEach, describe, expect, test } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { Cluster, type Member } from '../../testing/cluster.ts';
import { FaultyVolume } from '../../testing/faulty-volume.ts';
import { registerId, World } from '../../testing/world.ts';

const opened: { remove(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.remove();
});

/** Four members, each on a volume that can be copied and restored. */
async function openFour() {
  const cluster = new Cluster(4);
  opened.push(cluster);
  const volumes = new Map(cluster.members.map((member) => [member, new FaultyVolume()]));
  cluster.storageOf = (member) => volumes.get(member)?.storage();
  await cluster.open();
  await cluster.begin();
  await cluster.agreed();
  const copy = (member: Member) => volumes.get(member)?.copy() ?? new FaultyVolume();
  return { cluster, copy, putBack: (member: Member, volume: FaultyVolume) => volumes.set(member, volume) };
}

/** Seals that many further dockets. */
async function grow(cluster: Cluster, name: string, dockets: number): Promise<void> {
  for (let index = 0; index < dockets; index += 1) {
    const { txId } = await cluster.submit(cluster.member(0), { payload: { [name]: index } });
    await waitFor(() => cluster.ledger.sealed.has(txId), { deadlineMs: 20_000 });
  }
}

function messagesOf(member: Member): string {
  return member.runtime.lines.map((line) => String(line['msg'])).join('\n');
}

describe('a volume that is behind the chain', () => {
  test('as an older copy is reported with its range, and nothing conflicting is signed', async () => {
    const { cluster, copy, putBack } = await openFour();
    const third = cluster.member(2);
    await grow(cluster, 'before', 2);
    await cluster.agreed();
    await cluster.stop(third);
    const older = copy(third);
    await cluster.start(third);
    expect(third.engine.volumeGap(registerId)).toBeUndefined();
    await grow(cluster, 'between', 3);
    await cluster.agreed();
    const held = cluster.ledger.dockets.length - 3;
    await cluster.stop(third);
    putBack(third, older);
    const signedBefore = third.signer.signed.length;
    await cluster.start(third);
    const chain = cluster.ledger.dockets.length;
    expect(third.engine.volumeGap(registerId)).toMatchObject({ held, chain });
    expect(messagesOf(third)).toContain(`it lacks dockets ${held} to ${chain - 1}`);
    // Without one of the others its votes are needed again.
    await cluster.stop(cluster.member(3));
    await grow(cluster, 'after', 2);
    await waitFor(() => third.signer.signed.length > signedBefore);
    for (const member of [0, 1, 2].map((index) => cluster.member(index))) {
      expect(member.engine.peering.evidence(registerId)).toEqual([]);
    }
  }, 60_000);

  test('after downtime is reported', async () => {
    const { cluster } = await openFour();
    const third = cluster.member(2);
    await cluster.stop(third);
    const held = cluster.ledger.dockets.length;
    await grow(cluster, 'away', 2);
    await cluster.start(third);
    expect(third.engine.volumeGap(registerId)).toMatchObject({ held, chain: held + 2 });
  }, 60_000);

  test('when empty is reported', async () => {
    const { cluster, putBack } = await openFour();
    const third = cluster.member(2);
    await grow(cluster, 'before', 1);
    await cluster.agreed();
    await cluster.stop(third);
    putBack(third, new FaultyVolume());
    await cluster.start(third);
    expect(third.engine.volumeGap(registerId)).toMatchObject({ held: 0, chain: 2 });
  }, 60_000);

  test('is counted, and a complete one is not', async () => {
    const disk = new FaultyVolume();
    const world = await new World({ environment: { storage: disk.storage() } }).open();
    opened.push(world);
    await world.begin();
    const older = disk.copy();
    await world.submit(world.sign().text);
    await world.sealed(2);
    await waitFor(() => world.register.facts.storedHeight === 2);
    await world.close();
    const behind = async (volume: FaultyVolume) => {
      const runtime = testRuntime('validator', { level: 'silent' });
      const { directory, ledger } = world;
      const restarted = new World({ runtime, directory, ledger, environment: { storage: volume.storage() } });
      await restarted.open();
      opened.push(restarted);
      const text = await runtime.telemetry.registry.metrics();
      return /^chancery_validator_volume_behind_dockets_total (\d+)/m.exec(text)?.[1];
    };
    expect(await behind(disk)).toBe('0');
    expect(await behind(older)).toBe('1');
  });
});

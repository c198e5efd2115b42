import { describe, expect, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { systemClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { createRandom, type Random } from '#kit/testing/random.ts';
import { Journal } from '../../disk/log/journal.ts';
import { Volume } from '../../disk/volume/volume.ts';
import { Disk } from './disk.ts';
import { EventQueue, type ProcessHandle } from './event-queue.ts';

const log = createLogger({ service: 'test', level: 'silent' });

interface Written {
  /** Entries whose append was acknowledged, over all lives of the log. */
  readonly acknowledged: string[];
  /** Entries that the last start found. */
  readonly found: string[];
  /** Entries that one start found and a later one did not. */
  readonly vanished: string[];
}

/** Writes a log whose process is killed or whose machine loses power repeatedly. */
async function writeAndCut(seed: number, forgets: boolean, losses: number): Promise<Written> {
  const random = createRandom(seed);
  const eventQueue = new EventQueue(0);
  const disk = new Disk({ forceMs: () => random.between(0.2, 5), forgets });
  const acknowledged: string[] = [];
  const found: string[] = [];
  const vanished: string[] = [];
  for (let round = 0; round <= losses; round += 1) {
    const handle: ProcessHandle = { name: 'log', alive: true };
    const options = {
      directory: 'volume',
      segmentBytes: 2000,
      retainBytes: 1 << 20,
      log,
      volume: new Volume(systemClock(), log),
      schedule: () => {},
    };
    const before = found.splice(0);
    let failure: unknown;
    Journal.open({ ...options, storage: disk.storage(eventQueue, handle) }, (entry) =>
      found.push(Buffer.from(entry.body).toString()),
    ).then(
      (journal) => {
        vanished.push(...before.filter((text) => !found.includes(text)));
        write(journal, { eventQueue, handle, random, acknowledged, round });
      },
      (error: unknown) => {
        failure = error;
      },
    );
    await eventQueue.run(eventQueue.elapsedMs + random.between(5, 120), () => false);
    if (failure !== undefined) throw failure;
    handle.alive = false;
    if (round < losses && random.chance(0.6)) disk.losePower(random);
    else if (round === losses) await eventQueue.run(eventQueue.elapsedMs + 1000, () => false);
  }
  return { acknowledged, found, vanished };
}

function write(
  journal: Journal,
  world: {
    eventQueue: EventQueue;
    handle: ProcessHandle;
    random: Random;
    acknowledged: string[];
    round: number;
  },
): void {
  const { eventQueue, handle, random, acknowledged, round } = world;
  for (let index = 0; index < 20; index += 1) {
    eventQueue.after(
      random.between(0, 100),
      () => {
        const text = `${round}/${index}/${'x'.repeat(random.whole(0, 900))}`;
        void journal.append({ type: 1, body: Buffer.from(text) }).then(() => acknowledged.push(text));
      },
      handle,
    );
  }
}

describe('a log whose machine loses power', () => {
  it('has every acknowledged entry, in order, and starts every time', async () => {
    let total = 0;
    for (let seed = 1; seed <= 60; seed += 1) {
      const { acknowledged, found, vanished } = await writeAndCut(seed, false, 6);
      expect(vanished, `seed ${seed}`).toEqual([]);
      const kept = found.filter((text) => acknowledged.includes(text));
      const expected = acknowledged.filter((text) => Number(text.split('/')[0]) < 6);
      expect(kept.slice(0, expected.length), `seed ${seed}`).toEqual(expected);
      total += expected.length;
    }
    expect(total).toBeGreaterThan(500);
  });

  it('loses acknowledged entries or detects damage when the disk lies', async () => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const harm = await writeAndCut(seed, true, 6).then(
        ({ acknowledged, found }) => acknowledged.filter((text) => !found.includes(text)).length,
        (error: unknown) => (isAppError(error) && error.code === 'JOURNAL_DAMAGED' ? 1 : 0),
      );
      expect(harm, `seed ${seed}`).toBeGreaterThan(0);
    }
  });
});

describe('a simulated disk', () => {
  it('can be copied independently', async () => {
    const eventQueue = new EventQueue(0);
    const handle: ProcessHandle = { name: 'x', alive: true };
    const disk = new Disk({ forceMs: () => 1 });
    const act = async () => {
      const file = await disk.storage(eventQueue, handle).create('volume/a');
      await file.write(Buffer.from('one'), 0);
      const copy = disk.copy();
      await file.write(Buffer.from('two'), 3);
      const read = (from: Disk) => from.storage(eventQueue, handle).read('volume/a');
      return [String(await read(disk)), String(await read(copy))];
    };
    const done = act();
    await eventQueue.run(100, () => false);
    expect(await done).toEqual(['onetwo', 'one']);
  });

  it('does nothing more for a dead process', async () => {
    const eventQueue = new EventQueue(0);
    const handle: ProcessHandle = { name: 'x', alive: true };
    const disk = new Disk({ forceMs: () => 5 });
    let isForced = false;
    const act = async () => {
      const file = await disk.storage(eventQueue, handle).create('volume/a');
      await file.force();
      isForced = true;
    };
    void act();
    await eventQueue.run(2, () => false);
    handle.alive = false;
    await eventQueue.run(50, () => false);
    expect(isForced).toBe(false);
  });
});

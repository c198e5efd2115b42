import { describe, expect, test } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { FaultyVolume, fileError } from '../../testing/faulty-volume.ts';
import { Volume } from '../volume/volume.ts';
import type { Entry } from './format.ts';
import { type CarryOver, Journal, type JournalOptions } from './journal.ts';

const entry = (body: string): Entry => ({ type: 1, body: Buffer.from(body) });

/** A log on a volume with injected faults; the test triggers its retries. */
class Stand {
  readonly disk = new FaultyVolume();
  readonly lines: string[] = [];
  readonly log = createLogger({
    service: 'test',
    level: 'warn',
    destination: { write: (line) => void this.lines.push(String(JSON.parse(line).msg)) },
  });
  readonly delaysMs: number[] = [];
  volume = new Volume(manualClock(0), this.log);
  #retry: (() => void) | undefined;

  async open(options: Partial<JournalOptions> = {}, carryOver: CarryOver = () => []) {
    const seen: string[] = [];
    this.volume = new Volume(manualClock(0), this.log);
    const journal = await Journal.open(
      {
        directory: 'log',
        segmentBytes: 1 << 20,
        retainBytes: 1 << 24,
        log: this.log,
        storage: this.disk.storage(),
        volume: this.volume,
        schedule: (ms, act) => {
          this.delaysMs.push(ms);
          this.#retry = act;
        },
        ...options,
      },
      (read) => seen.push(Buffer.from(read.body).toString()),
    );
    journal.allowDeletion(carryOver);
    return { journal, seen };
  }

  /** Fires the retry timer; resolves when the retry has ended. */
  async retry(): Promise<void> {
    const act = this.#retry;
    this.#retry = undefined;
    if (act === undefined) throw new Error('nothing is to be tried again');
    act();
    await settle();
  }

  get isToRetry(): boolean {
    return this.#retry !== undefined;
  }
}

/** Waits until everything that needs no timer has happened. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

function observed(append: Promise<number>) {
  const state = { outcome: 'open' };
  append.then(
    () => {
      state.outcome = 'written';
    },
    () => {
      state.outcome = 'refused';
    },
  );
  return state;
}

describe('a log on a full disk', () => {
  test('keeps pending writes in order and writes them once there is space', async () => {
    const stand = new Stand();
    const { journal } = await stand.open();
    await journal.append(entry('before'));
    stand.disk.capacityBytes = stand.disk.usedBytes + 30;
    const held = [observed(journal.append(entry('a'.repeat(100))))];
    await settle();
    held.push(observed(journal.append(entry('b'))), observed(journal.append(entry('c'))));
    await settle();
    expect(held.map(({ outcome }) => outcome)).toEqual(['open', 'open', 'open']);
    expect(stand.volume.full).toMatchObject({ reason: 'disk full' });
    expect(journal.failure).toBeUndefined();
    stand.disk.capacityBytes = 1 << 20;
    await stand.retry();
    expect(held.map(({ outcome }) => outcome)).toEqual(['written', 'written', 'written']);
    expect(stand.volume.isFull).toBe(false);
    await journal.append(entry('after'));
    await journal.close();
    stand.disk.losePower();
    expect((await stand.open()).seen).toEqual(['before', 'a'.repeat(100), 'b', 'c', 'after']);
  });

  test('retries with a growing delay, without a busy loop, and logs it once', async () => {
    const stand = new Stand();
    const { journal } = await stand.open();
    stand.disk.capacityBytes = stand.disk.usedBytes;
    const held = observed(journal.append(entry('x')));
    await settle();
    for (let n = 0; n < 8; n += 1) {
      const before = stand.disk.calls;
      await settle();
      expect(stand.disk.calls).toBe(before);
      await stand.retry();
    }
    expect(stand.delaysMs).toEqual([250, 500, 1000, 2000, 4000, 5000, 5000, 5000, 5000]);
    expect(stand.lines.filter((line) => line.startsWith('Paused: disk full'))).toHaveLength(1);
    expect(held.outcome).toBe('open');
    await journal.close();
    expect(held.outcome).toBe('refused');
  });

  test('leaves nothing of a failed write behind when the process ends', async () => {
    const stand = new Stand();
    const { journal } = await stand.open();
    await journal.append(entry('kept'));
    stand.disk.capacityBytes = stand.disk.usedBytes + 40;
    observed(journal.append(entry('y'.repeat(500))));
    await settle();
    const again = await stand.open();
    expect(again.seen).toEqual(['kept']);
    stand.disk.capacityBytes = 1 << 20;
    await again.journal.append(entry('next'));
    await again.journal.close();
    expect((await stand.open()).seen).toEqual(['kept', 'next']);
  });

  test('truncates and rewrites what a failed force left uncertain', async () => {
    const stand = new Stand();
    const { journal } = await stand.open();
    await journal.append(entry('before'));
    let failures = 2;
    stand.disk.beforeForce = () => {
      failures -= 1;
      if (failures >= 0) throw fileError('EDQUOT');
    };
    const held = observed(journal.append(entry('unsure')));
    await settle();
    expect(held.outcome).toBe('open');
    await stand.retry();
    expect(held.outcome).toBe('open');
    await stand.retry();
    expect(held.outcome).toBe('written');
    await journal.close();
    stand.disk.losePower();
    expect((await stand.open()).seen).toEqual(['before', 'unsure']);
  });

  test('begins its next file when there is space, and carries each entry over once', async () => {
    const stand = new Stand();
    let carries = 0;
    const carryOver = () => {
      carries += 1;
      return [entry(`alive ${'z'.repeat(300)}`)];
    };
    const { journal } = await stand.open({ segmentBytes: 200, retainBytes: 300 }, carryOver);
    await journal.append(entry('1'.repeat(200)));
    await settle();
    stand.disk.capacityBytes = stand.disk.usedBytes + 205 + 16 + 100;
    await journal.append(entry('2'.repeat(180)));
    await settle();
    // The second file is full; the third has its header and no space for the carried-over entries.
    const held = observed(journal.append(entry('3')));
    for (let n = 0; n < 3; n += 1) await stand.retry();
    expect([held.outcome, stand.volume.isFull, carries]).toEqual(['open', true, 1]);
    stand.disk.capacityBytes = 1 << 20;
    await stand.retry();
    expect(held.outcome).toBe('written');
    await journal.close();
    stand.disk.losePower();
    const { seen } = await stand.open();
    expect(seen.filter((text) => text.startsWith('alive')).length).toBeGreaterThan(0);
    expect(seen.filter((text) => text === '3')).toHaveLength(1);
  });

  test('cannot be opened without space for its first file, and reports the reason', async () => {
    const stand = new Stand();
    stand.disk.capacityBytes = 4;
    await expect(stand.open()).rejects.toMatchObject({ kind: 'unavailable', code: 'JOURNAL_UNAVAILABLE' });
    expect(stand.lines.join()).toContain('Paused: disk full');
    stand.disk.capacityBytes = 1 << 20;
    expect((await stand.open()).seen).toEqual([]);
  });

  test('fails when more entries wait for space than a paused validator writes', async () => {
    const stand = new Stand();
    const { journal } = await stand.open();
    stand.disk.capacityBytes = stand.disk.usedBytes;
    const held: ReturnType<typeof observed>[] = [];
    const large: Entry = { type: 1, body: Buffer.alloc(16 * 1024 * 1024) };
    for (let n = 0; n < 6; n += 1) {
      held.push(observed(journal.append(large)));
      await settle();
    }
    expect(journal.failure?.message).toContain('too many entries wait');
    expect(new Set(held.map(({ outcome }) => outcome))).toEqual(new Set(['refused']));
  });
});

describe('a log whose disk fails', () => {
  test('is closed for good by a failed force: no later write is acknowledged', async () => {
    const stand = new Stand();
    const { journal } = await stand.open();
    await journal.append(entry('before'));
    let isFailing = true;
    stand.disk.beforeForce = () => {
      if (isFailing) throw fileError('EIO');
    };
    const first = observed(journal.append(entry('lost')));
    await settle();
    isFailing = false;
    const second = observed(journal.append(entry('later')));
    await settle();
    expect([first.outcome, second.outcome]).toEqual(['refused', 'refused']);
    expect(journal.failure).toMatchObject({ code: 'EIO' });
    expect(stand.isToRetry).toBe(false);
    expect(stand.lines.join()).toContain('until it is restarted');
  });

  test('makes durable what a start reads, although a failed force left it in memory only', async () => {
    const stand = new Stand();
    const { journal } = await stand.open();
    await journal.append(entry('before'));
    let failures = 1;
    stand.disk.beforeForce = () => {
      failures -= 1;
      if (failures === 0) throw fileError('EIO');
    };
    await expect(journal.append(entry('unsure'))).rejects.toMatchObject({ code: 'JOURNAL_UNAVAILABLE' });
    const { seen } = await stand.open();
    expect(seen).toEqual(['before', 'unsure']);
    stand.disk.losePower();
    expect((await stand.open()).seen).toEqual(['before', 'unsure']);
  });

  test('does not continue on a file that changed while it waited for space', async () => {
    const stand = new Stand();
    const { journal } = await stand.open();
    await journal.append(entry('before'));
    stand.disk.capacityBytes = stand.disk.usedBytes + 1;
    const held = observed(journal.append(entry('after'.repeat(20))));
    await settle();
    const storage = stand.disk.storage();
    const [name] = await storage.list('log');
    const file = await storage.open(`log/${name}`);
    stand.disk.capacityBytes = 1 << 20;
    await file.write(Buffer.from('damage'), 30);
    await stand.retry();
    expect(held.outcome).toBe('refused');
    expect(journal.failure).toMatchObject({ code: 'JOURNAL_DAMAGED' });
  });
});

describe('a volume', () => {
  test('rejects a waiting caller at once when its write must wait for space', async () => {
    const volume = new Volume(manualClock(7), createLogger({ service: 'test', level: 'silent' }));
    const write = Promise.withResolvers<number>();
    const waiting = volume.unlessFull(write.promise);
    volume.onFull(fileError('ENOSPC'));
    await expect(waiting).rejects.toMatchObject({ code: 'VALIDATOR_PAUSED', retryAfterSeconds: 5 });
    await expect(volume.unlessFull(write.promise)).rejects.toMatchObject({ code: 'VALIDATOR_PAUSED' });
    expect(() => volume.assertDiskSpace()).toThrow('This validator is Paused: disk full');
    let goneOn = 0;
    volume.onDiskSpace(() => {
      goneOn += 1;
    });
    volume.onSpaceFreed();
    volume.onSpaceFreed();
    expect(goneOn).toBe(1);
    write.resolve(3);
    expect(await volume.unlessFull(write.promise)).toBe(3);
    expect(() => volume.assertDiskSpace()).not.toThrow();
  });
});

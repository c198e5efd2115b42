import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { Volume } from '../volume/volume.ts';
import { type Entry, encodeBatch, encodeSegmentHeader, scanSegment } from './format.ts';
import { type CarryOver, Journal, type JournalOptions } from './journal.ts';

const log = createLogger({ service: 'test', level: 'silent' });
const text = (entry: Entry) => `${entry.type}:${Buffer.from(entry.body).toString()}`;
const entry = (body: string, type = 1): Entry => ({ type, body: Buffer.from(body) });

let directory = '';
const opened: Journal[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'journal-'));
});
afterEach(async () => {
  for (const journal of opened.splice(0)) await journal.close();
  await rm(directory, { recursive: true, force: true });
});

async function openJournal(options: Partial<JournalOptions> = {}, carryOver: CarryOver = () => []) {
  const seen: string[] = [];
  const journal = await Journal.open(
    {
      directory,
      segmentBytes: 1 << 20,
      retainBytes: 1 << 24,
      log,
      volume: new Volume(systemClock(), log),
      schedule: () => {},
      ...options,
    },
    (read) => seen.push(text(read)),
  );
  journal.allowDeletion(carryOver);
  opened.push(journal);
  return { journal, seen };
}

async function files(): Promise<string[]> {
  return (await readdir(directory)).sort();
}

async function onlyFile(): Promise<string> {
  return join(directory, (await files())[0] ?? '');
}

describe('the log', () => {
  it('replays appended entries in order', async () => {
    const first = await openJournal();
    await first.journal.append(entry('a'));
    await Promise.all([first.journal.append(entry('b', 2), entry('c')), first.journal.append(entry('d'))]);
    await first.journal.close();
    const second = await openJournal();
    expect(second.seen).toEqual(['1:a', '2:b', '1:c', '1:d']);
    await second.journal.append(entry('e'));
    await second.journal.close();
    expect((await openJournal()).seen).toEqual(['1:a', '2:b', '1:c', '1:d', '1:e']);
  });

  it('forces concurrent appends together', async () => {
    const { journal } = await openJournal();
    await Promise.all(Array.from({ length: 200 }, (_, index) => journal.append(entry(String(index)))));
    expect(journal.forcedWrites).toBeLessThanOrEqual(3);
    await journal.close();
  });

  it('truncates a torn tail of any length and continues', async () => {
    const first = await openJournal();
    await first.journal.append(entry('kept'));
    const path = await onlyFile();
    const keptBytes = (await readFile(path)).length;
    await first.journal.append(entry('torn'.repeat(50)));
    await first.journal.close();
    const whole = await readFile(path);
    for (let size = keptBytes; size < whole.length; size += 7) {
      await writeFile(path, whole.subarray(0, size));
      const { journal, seen } = await openJournal();
      expect(seen).toEqual(['1:kept']);
      await journal.append(entry('next'));
      await journal.close();
      expect((await openJournal()).seen).toEqual(['1:kept', '1:next']);
    }
  });

  it('truncates a tail of garbage and of zeros', async () => {
    for (const tail of [Buffer.alloc(300), Buffer.from('BtCh garbage that is no batch')]) {
      await rm(directory, { recursive: true });
      const first = await openJournal();
      await first.journal.append(entry('kept'));
      await first.journal.close();
      const path = await onlyFile();
      await writeFile(path, Buffer.concat([await readFile(path), tail]));
      expect((await openJournal()).seen).toEqual(['1:kept']);
    }
  });

  it('refuses a flipped bit in a forced batch', async () => {
    const first = await openJournal();
    await first.journal.append(entry('one'));
    await first.journal.append(entry('two'));
    await first.journal.close();
    const path = await onlyFile();
    const whole = await readFile(path);
    for (const at of [3, 18, 25, 30, 40]) {
      const flipped = Buffer.from(whole);
      flipped[at] = (flipped[at] ?? 0) ^ 4;
      await writeFile(path, flipped);
      await expect(openJournal()).rejects.toMatchObject({ code: 'JOURNAL_DAMAGED' });
    }
  });

  it('refuses a missing or shortened segment that is not the last', async () => {
    const first = await openJournal({ segmentBytes: 64 });
    for (let index = 0; index < 6; index += 1) await first.journal.append(entry('x'.repeat(60)));
    await first.journal.close();
    const names = await files();
    const path = join(directory, names[1] ?? '');
    const bytes = await readFile(path);
    await truncate(path, bytes.length - 3);
    await expect(openJournal({ segmentBytes: 64 })).rejects.toMatchObject({ code: 'JOURNAL_DAMAGED' });
    await rm(path);
    await expect(openJournal({ segmentBytes: 64 })).rejects.toMatchObject({ code: 'JOURNAL_DAMAGED' });
  });

  it('stays within its size, carries live entries over, and still replays', async () => {
    const carried: number[] = [];
    const carryOver = (segment: number) => {
      carried.push(segment);
      return [entry(`alive-${segment}`, 9)];
    };
    const { journal } = await openJournal({ segmentBytes: 1000, retainBytes: 4000 }, carryOver);
    for (let index = 0; index < 100; index += 1) await journal.append(entry('y'.repeat(200)));
    expect(journal.sizeBytes).toBeLessThan(6000);
    await journal.close();
    expect(carried.length).toBeGreaterThan(5);
    const { seen } = await openJournal();
    expect(seen).toContain(`9:alive-${carried.at(-1)}`);
  });

  it('drops a segment whose header never reached the disk', async () => {
    const first = await openJournal();
    await first.journal.append(entry('a'));
    await first.journal.close();
    await writeFile(join(directory, 'journal-0000000002.log'), Buffer.from('CHJ'));
    const second = await openJournal();
    expect(second.seen).toEqual(['1:a']);
    await second.journal.append(entry('b'));
    await second.journal.close();
    expect((await openJournal()).seen).toEqual(['1:a', '1:b']);
  });

  it('is closed for good after a failed write', async () => {
    const { journal } = await openJournal({ segmentBytes: 1, retainBytes: 1 << 24 });
    await rm(directory, { recursive: true });
    await journal.append(entry('a'));
    await expect(journal.append(entry('b'))).rejects.toMatchObject({ code: 'JOURNAL_UNAVAILABLE' });
    expect(journal.failure).toBeDefined();
  });
});

describe('the log format', () => {
  it('finds exactly the batches before a cut, wherever it is', () => {
    const bodies = fc.array(fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 4 }), {
      maxLength: 5,
    });
    fc.assert(
      fc.property(bodies, fc.double({ min: 0, max: 1, noNaN: true }), (batches, share) => {
        const encoded = batches.map((entries, index) =>
          encodeBatch(
            index + 1,
            entries.map((body, type) => ({ type, body })),
          ),
        );
        const whole = Buffer.concat([encodeSegmentHeader(7), ...encoded]);
        const cut = Math.floor(whole.length * share);
        const scan = scanSegment(whole.subarray(0, cut), 7);
        let expected = 0;
        let end = 16;
        for (const batch of encoded) {
          end += batch.length;
          if (end <= cut) expected += 1;
        }
        expect(scan.batches).toHaveLength(expected);
        expect(scanSegment(whole, 7).state).toBe('whole');
      }),
    );
  });
});

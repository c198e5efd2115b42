import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import { createRecovery, type Recovery } from './jobs.ts';
import type { DocketSource } from './source.ts';

/** Behaviour of the fake sources; `dockets` in order of their numbers, without the genesis. */
interface Fake {
  height: number;
  readonly give: (from: number) => Iterable<DocketBundle>;
}

const clock = manualClock(Date.now());
let register: TestRegister;
let registerId: string;
let recovery: Recovery;
let sources: Record<string, Fake>;
/** Sources whose dockets were requested, in order. */
let asked: string[];
let changes: string[];
let onSettle: () => Promise<unknown>;

function sourceOf([name, fake]: readonly [string, Fake]): DocketSource {
  return {
    name,
    async heights() {
      if (fake.height < 0) throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'away at 10.0.0.1');
      return new Map([[registerId, fake.height]]);
    },
    async *dockets(_registerId, from) {
      asked.push(name);
      yield* fake.give(from);
    },
  };
}

beforeAll(async () => {
  register = await startTestRegister('recovery_jobs', { clock });
});
afterAll(() => register.stop());
beforeEach(async () => {
  registerId = await register.createRegister();
  [sources, asked, changes, onSettle] = [{}, [], [], async () => undefined];
  recovery = createRecovery({
    database: register.database,
    findSources: async () => Object.entries(sources).map(sourceOf),
    writeDocket: register.ledger.writeDocket,
    clock,
    log: register.runtime.log,
    within: (promise) => promise,
    settle: async () => void (await onSettle()),
    onChanged: async (id, status) => {
      // the first call is delayed
      for (let ticks = changes.length === 0 ? 20 : 0; ticks > 0; ticks -= 1) await Promise.resolve();
      if (id === registerId) changes.push(status);
    },
  });
});

const nothing = () => [];
const entry = () => recovery.health().registers.find((one) => one.registerId === registerId);

describe('a round of recovery', () => {
  it('does not recover a register whose validators are writing dockets', async () => {
    const coming = await register.proposeMore(registerId, 3);
    sources = { a: { height: 4, give: nothing } };
    onSettle = async () => register.ledger.writeDocket(coming[0] as DocketBundle);
    await recovery.round();
    expect([entry()?.status, entry()?.targetDocket, asked]).toEqual(['synced', 1, []]);
    onSettle = async () => undefined;
    await recovery.round();
    expect([entry()?.status, asked]).toEqual(['stalled', ['a']]);
  });

  it('gives up a source that repeatedly sends stored dockets', async () => {
    const [first, second] = await register.proposeMore(registerId, 2);
    if (first === undefined || second === undefined) throw new Error('no dockets');
    const again = function* () {
      for (;;) yield first;
    };
    sources = { liar: { height: 3, give: again }, honest: { height: 3, give: () => [second] } };
    await recovery.round();
    expect(asked).toEqual(['liar', 'honest']);
    expect(entry()).toMatchObject({ status: 'synced', currentDocket: 2, docketsProcessed: 2 });
  });

  it('tries every source, however many have nothing', async () => {
    const missing = await register.proposeMore(registerId, 2);
    const away = { height: 3, give: nothing };
    const give = (from: number) => missing.slice(from - 1);
    sources = { a: away, b: away, c: away, d: { height: 3, give } };
    await recovery.round();
    expect([asked, entry()?.status]).toEqual([['a', 'b', 'c'], 'stalled']);
    expect(entry()?.lastError).toBe('c: SOURCE_EXHAUSTED at docket 1');
    await recovery.round();
    expect(asked).toHaveLength(3);
    clock.advance(30_000);
    await recovery.round();
    expect([asked.slice(3), entry()?.status]).toEqual([['d'], 'synced']);
    expect(changes).toEqual(['recovering', 'stalled', 'recovering', 'synced']);
  });

  it('stays stalled while the last report of an unreachable source says so, until that source corrects it', async () => {
    const source: Fake = { height: 1_000_000, give: nothing };
    sources = { a: source };
    await recovery.round();
    source.height = -1;
    await recovery.round();
    expect(entry()).toMatchObject({ status: 'stalled', targetDocket: 999_999 });
    source.height = 1;
    await recovery.round();
    expect(entry()).toMatchObject({ status: 'synced', targetDocket: 0, progressPercent: 100 });
  });

  it('publishes each change once and in order, also when no source can be reached', async () => {
    const source: Fake = { height: 2, give: nothing };
    sources = { a: source };
    await recovery.round();
    source.height = -1;
    clock.advance(30_000);
    await recovery.round();
    expect(changes).toEqual(['recovering', 'stalled', 'recovering', 'stalled']);
  });
});

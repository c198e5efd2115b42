import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { emptyFilter } from '#core/ledger/key-filter.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { Scheduler } from '#kit/clock/timers.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { KeyPart } from '../../chain/keys/key-snapshot.ts';
import { RegisterKeys } from '../../chain/keys/register-keys.ts';
import { type KeyEvent, KeyLoader } from './key-loader.ts';

const filterBytes = 100_000;

/** A loader of registers whose keys take some bytes each. */
function create(options: { maxBytes?: number; leastQuestions?: number } = {}) {
  const clock = manualClock(1_000_000);
  const scheduler = new Scheduler(clock);
  const { log } = testRuntime('validator');
  const events: KeyEvent[] = [];
  const read: string[] = [];
  let failing: AppError | undefined;
  const gates = new Map<string, Promise<void>>();
  const loader = new KeyLoader({
    clock,
    scheduler,
    log,
    maxBytes: 1_000_000,
    leastQuestions: 1,
    ...options,
    ledger: { readKeys },
    onEvent: (event) => events.push(event),
  });
  async function* readKeys(registerId: string): AsyncGenerator<KeyPart> {
    read.push(registerId);
    await gates.get(registerId);
    if (failing !== undefined) throw failing;
    yield { kind: 'begin', height: 5, logRoot: 'ab', transactionCount: 0, filters: 1 };
    yield { kind: 'filter', filter: 0, sizeBytes: filterBytes, bits: emptyFilter(filterBytes / 2) };
    yield { kind: 'end' };
  }
  const register = (id: string) => ({
    id,
    keys: new RegisterKeys(),
    unstored: [],
    state: { height: 5 },
    rootAt: () => undefined,
  });
  const pass = (ms: number) => {
    clock.advance(ms);
    scheduler.run();
  };
  const fail = (error: AppError | undefined) => {
    failing = error;
  };
  return { loader, events, read, gates, register, pass, fail, clock };
}

const unavailable = new AppError('unavailable', 'RPC_UNAVAILABLE', 'gone');

describe('the loader of keys', () => {
  it('loads with the question that is one too many, one register at a time', async () => {
    const { loader, events, read, gates, register } = create({ leastQuestions: 3 });
    const [one, two] = [register('one'), register('two')];
    const gate = Promise.withResolvers<void>();
    gates.set('one', gate.promise);
    for (let n = 0; n < 2; n += 1) for (const each of [one, two]) loader.used(each);
    expect(read).toEqual([]);
    for (let n = 0; n < 5; n += 1) for (const each of [one, two]) loader.used(each);
    await waitFor(() => read.length === 1);
    gate.resolve();
    await waitFor(() => events.length === 2);
    expect([read, events]).toEqual([
      ['one', 'two'],
      ['complete', 'complete'],
    ]);
    expect([one, two].every(({ keys }) => keys.covers(5))).toBe(true);
    expect(loader.bytes).toBe(2 * filterBytes);
  });

  it('drops the keys of idle registers, and holds none then', async () => {
    const { loader, events, register, pass } = create();
    const [one, two] = [register('one'), register('two')];
    for (const each of [one, two]) loader.used(each);
    await waitFor(() => events.length === 2);
    for (let minute = 0; minute < 6; minute += 1) {
      pass(60_000);
      loader.used(two);
    }
    expect([one.keys.isEmpty, two.keys.isEmpty]).toEqual([true, false]);
    for (let minute = 0; minute < 7; minute += 1) pass(60_000);
    expect([loader.bytes, events]).toEqual([0, ['complete', 'complete', 'idle', 'idle']]);
  });

  it('keeps to its bound: idle registers give way, busy ones do not', async () => {
    const { loader, events, register, pass } = create({ maxBytes: 2.5 * filterBytes });
    const [one, two, three, four] = ['one', 'two', 'three', 'four'].map(register);
    for (const each of [one, two, three]) if (each !== undefined) loader.used(each);
    await waitFor(() => events.length === 3);
    expect(events).toEqual(['complete', 'complete', 'failed']);
    pass(61_000);
    for (const each of [two, four]) if (each !== undefined) loader.used(each);
    await waitFor(() => events.length === 5);
    expect(events.slice(3)).toEqual(['room', 'complete']);
    expect([one, two, three, four].map((each) => each?.keys.isEmpty)).toEqual([true, false, true, false]);
    expect(loader.bytes).toBe(2 * filterBytes);
  });

  it('tries again some seconds after a failure, and minutes after one that lasts', async () => {
    const { loader, events, read, register, pass, fail } = create();
    const one = register('one');
    const ask = async (count: number) => {
      loader.used(one);
      await waitFor(() => events.length === count);
      await new Promise((resolve) => setImmediate(resolve));
    };
    fail(unavailable);
    await ask(1);
    expect(one.keys.isEmpty).toBe(true);
    loader.used(one);
    pass(10_000);
    fail(new AppError('internal', 'INTERNAL_ERROR', 'not implemented'));
    await ask(2);
    pass(60_000);
    loader.used(one);
    expect(read).toHaveLength(2);
    fail(undefined);
    pass(240_000);
    await ask(3);
    expect(events).toEqual(['failed', 'failed', 'complete']);
  });

  it('waits twice as long after each further load that is not complete, and anew after a complete one', async () => {
    const { loader, events, read, register, pass, fail } = create();
    const one = register('one');
    /** Seconds until the next load is begun. */
    const nextLoad = async () => {
      const before = events.length;
      for (let seconds = 0; ; seconds += 1) {
        loader.used(one);
        if (read.length > before) {
          await waitFor(() => events.length > before);
          await new Promise((resolve) => setImmediate(resolve));
          return seconds;
        }
        pass(1_000);
      }
    };
    const loads = async (count: number) => {
      const waits: number[] = [];
      for (let n = 0; n < count; n += 1) waits.push(await nextLoad());
      return waits;
    };
    fail(new AppError('bad_gateway', 'KEYS_MALFORMED', 'truncated'));
    expect(await loads(8)).toEqual([0, 10, 20, 40, 80, 160, 300, 300]);
    fail(undefined);
    expect(await loads(1)).toEqual([300]);
    one.keys.discard();
    one.state.height = 7;
    expect(await loads(2)).toEqual([0, 10]);
    one.state.height = 5;
    expect(await loads(1)).toEqual([20]);
    expect(events.slice(-4)).toEqual(['complete', 'stale', 'stale', 'complete']);
  });

  it('begins no load once it has stopped', async () => {
    const { loader, register, read, gates } = create();
    gates.set('one', new Promise(() => {}));
    loader.used(register('one'));
    await waitFor(() => read.length === 1);
    loader.stop();
    loader.used(register('two'));
    expect(read).toEqual(['one']);
  });

  it('drops keys that a later answer contradicts, not those that an earlier one does', async () => {
    const { loader, events, register, clock } = create();
    const one = register('one');
    loader.used(one);
    await waitFor(() => events.length === 1);
    const facts = { registerId: 'one', height: 4, transactionCount: 0 };
    loader.learned(facts, clock.nowMs());
    expect(one.keys.isEmpty).toBe(false);
    loader.learned({ ...facts, registerId: 'two' }, clock.nowMs() + 1);
    loader.learned({ ...facts, height: 5 }, clock.nowMs() + 1);
    expect(one.keys.isEmpty).toBe(false);
    loader.learned(facts, clock.nowMs() + 1);
    expect([one.keys.isEmpty, events]).toEqual([true, ['complete', 'mismatch']]);
  });
});

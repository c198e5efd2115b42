import { beforeEach, describe, expect, it } from 'vitest';
import { type ManualTiming, manualTiming, settle } from '#kit/testing/manual-timing.ts';
import { type TestRuntime, testRuntime } from '#kit/testing/runtime.ts';
import { type FollowOptions, followLog } from './follow.ts';

describe('following a log', () => {
  let timing: ManualTiming;
  let runtime: TestRuntime;
  let readAtMs: number[];
  let listeners: Set<() => void>;
  let failures: number;

  beforeEach(() => {
    timing = manualTiming();
    runtime = testRuntime('test');
    readAtMs = [];
    listeners = new Set();
    failures = 0;
  });

  const follow = (readPage: FollowOptions['readPage'], change: Partial<FollowOptions> = {}) =>
    followLog({
      readPage: (signal) => {
        readAtMs.push(timing.monotonicMs());
        return readPage(signal);
      },
      bus: {
        subscribe: (subject, listener) => {
          expect(subject).toBe('numbers');
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      },
      subject: 'numbers',
      pollMs: 100,
      log: runtime.log,
      report: (error) => ({ level: 'warn', fields: { err: error }, message: String(error) }),
      recovered: 'read again',
      onFailed: () => {
        failures += 1;
      },
      timers: timing,
      ...change,
    });
  const notify = () => {
    for (const listener of listeners) listener();
  };
  const messages = () => runtime.lines.map((line) => line['msg']);

  it('reads at once, then at the poll interval', async () => {
    const follower = follow(async () => true);
    await timing.advance(250);
    expect(readAtMs).toEqual([0, 100, 200]);
    await follower.stop();
    await timing.advance(1_000);
    expect(readAtMs).toHaveLength(3);
  });

  it('reads a log of several pages without a pause', async () => {
    let pages = 3;
    const follower = follow(async () => {
      pages -= 1;
      return pages <= 0;
    });
    await timing.advance(100);
    expect(readAtMs).toEqual([0, 0, 0, 100]);
    await follower.stop();
  });

  it('a wake signal starts a read, also one that arrives during a read', async () => {
    const follower = follow(async () => true, { pollMs: 60_000 });
    await settle();
    notify();
    await settle();
    expect(readAtMs).toEqual([0, 0]);
    await follower.stop();
    expect(listeners.size).toBe(0);

    const ends = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()];
    let reads = 0;
    const slow = follow(async () => ends[reads++]?.promise ?? true, { pollMs: 60_000 });
    notify();
    ends[0]?.resolve(true);
    await settle();
    expect(reads).toBe(2);
    ends[1]?.resolve(true);
    await slow.stop();
  });

  it('doubles the pause after failures, up to a limit, and begins anew after a success', async () => {
    let isDown = true;
    const follower = follow(() => (isDown ? Promise.reject(new Error('down')) : Promise.resolve(true)), {
      longestRetryMs: 500,
    });
    await timing.advance(1_700);
    expect(readAtMs).toEqual([0, 100, 300, 700, 1_200, 1_700]);
    isDown = false;
    notify();
    await settle();
    isDown = true;
    readAtMs.length = 0;
    await timing.advance(300);
    expect(readAtMs).toEqual([1_800, 1_900]);
    await follower.stop();
  });

  it('keeps the pause when no limit is given, and a wake signal ends it', async () => {
    const follower = follow(() => Promise.reject(new Error('down')));
    await timing.advance(300);
    expect(readAtMs).toEqual([0, 100, 200, 300]);
    notify();
    await settle();
    expect(readAtMs).toEqual([0, 100, 200, 300, 300]);
    await follower.stop();
  });

  it('logs an outage once, its end, and a change of its reason; counts every failure', async () => {
    let fault: string | undefined = 'down';
    const follower = follow(async () => {
      if (fault !== undefined) throw new Error(fault);
      return true;
    });
    await timing.advance(200);
    fault = 'unreadable';
    await timing.advance(200);
    expect(messages()).toEqual(['Error: down', 'Error: unreadable']);
    expect(failures).toBe(5);
    fault = undefined;
    await timing.advance(200);
    expect(messages().slice(2)).toEqual(['read again']);
    await follower.stop();
  });

  it('ends a read that does not end at its stop, which is no failure', async () => {
    const follower = follow(
      (signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('ended')))),
    );
    await settle();
    await follower.stop();
    expect([failures, messages()]).toEqual([0, []]);
  });

  it('reads no further page after its stop', async () => {
    const first = Promise.withResolvers<boolean>();
    const follower = follow(() => first.promise);
    const stopped = follower.stop();
    first.resolve(false);
    await stopped;
    expect(readAtMs).toEqual([0]);
  });
});

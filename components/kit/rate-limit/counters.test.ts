import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { slidingWindow, tokenBucket } from './counters.ts';

describe('slidingWindow', () => {
  it('allows the limit, then gives the time to retry, which is accurate', () => {
    const counter = slidingWindow(3, 60);
    const verdicts = [0, 1_000, 2_000, 3_000].map((nowMs) => counter.take('k', nowMs));
    expect(verdicts.map((verdict) => verdict.allowed)).toEqual([true, true, true, false]);
    expect(verdicts.map((verdict) => verdict.remaining)).toEqual([2, 1, 0, 0]);
    const waitMs = (verdicts[3]?.retryAfterSeconds ?? 0) * 1_000;
    expect(counter.take('k', 3_000 + waitMs - 2_000).allowed).toBe(false);
    expect(counter.take('k', 3_000 + waitMs).allowed).toBe(true);
  });

  it('counts keys apart and drops windows that are two windows old', () => {
    const counter = slidingWindow(1, 60);
    expect(counter.take('a', 0).allowed).toBe(true);
    expect(counter.take('b', 0).allowed).toBe(true);
    expect(counter.take('a', 120_000).allowed).toBe(true);
  });

  it('never allows a burst across a window border to exceed the limit by much', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4_000), { minLength: 50, maxLength: 200 }), (gaps) => {
        const counter = slidingWindow(10, 10);
        const allowed: number[] = [];
        let nowMs = 0;
        for (const gap of gaps) {
          nowMs += gap;
          if (counter.take('k', nowMs).allowed) {
            allowed.push(nowMs);
          }
        }
        const fixedWindows = Map.groupBy(allowed, (atMs) => Math.floor(atMs / 10_000));
        expect([...fixedWindows.values()].every((window) => window.length <= 10)).toBe(true);
      }),
    );
  });

  it('gives a retryAfterSeconds after which a request is allowed', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.nat(9_000), { minLength: 1, maxLength: 60 }),
        (limit, gaps) => {
          const counter = slidingWindow(limit, 10);
          let nowMs = 1_234;
          for (const gap of gaps) {
            nowMs += gap;
            const verdict = counter.take('k', nowMs);
            if (!verdict.allowed) {
              nowMs += verdict.retryAfterSeconds * 1_000;
              expect(counter.take('k', nowMs).allowed).toBe(true);
            }
          }
        },
      ),
    );
  });
});

describe('tokenBucket', () => {
  it('allows a burst and then the refill', () => {
    const counter = tokenBucket(5, 2);
    const burst = Array.from({ length: 6 }, () => counter.take('k', 0).allowed);
    expect(burst).toEqual([true, true, true, true, true, false]);
    expect(counter.take('k', 400).allowed).toBe(false);
    expect(counter.take('k', 500).allowed).toBe(true);
    expect(counter.take('k', 500)).toMatchObject({ allowed: false, retryAfterSeconds: 1, resetSeconds: 3 });
  });

  it('never holds more than its limit', () => {
    const counter = tokenBucket(2, 100);
    counter.take('k', 0);
    const later = Array.from({ length: 3 }, () => counter.take('k', 1_000_000).allowed);
    expect(later).toEqual([true, true, false]);
  });

  it('tolerates a clock that goes back', () => {
    const counter = tokenBucket(1, 1);
    expect(counter.take('k', 10_000).allowed).toBe(true);
    expect(counter.take('k', 1_000).allowed).toBe(false);
  });
});

describe('memory', () => {
  it('stays bounded when every request has another key', () => {
    const counters = [slidingWindow(5, 60), tokenBucket(5, 1)];
    for (const counter of counters) {
      for (let index = 0; index < 150_000; index += 1) {
        counter.take(`k${index}`, 0);
      }
      expect(counter.size).toBeLessThanOrEqual(100_000);
    }
  });
});

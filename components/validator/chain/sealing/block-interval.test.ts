import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defaultPolicy } from '#core/ledger/policy.ts';
import { rulesOf } from '../state/rules.ts';
import { batchDelayMs, unlimitedBuild } from './block-interval.ts';

const rules = rulesOf(defaultPolicy());
const { docketBuildIntervalMs, maxTransactionsPerDocket, maxDocketBytes } = rules;
const inFlight = {
  inFlight: 1,
  waiting: 3,
  waitingBytes: 3_000,
  sinceDecidedMs: 0,
  sinceArrivalMs: 0,
  isAdmitting: false,
  lastTransactions: 3,
};
const loaded = { ...inFlight, inFlight: 0, lastTransactions: 200 };

test.each([
  ['no docket is being stored', { inFlight: 0 }, 0],
  ['a docket is being stored', {}, docketBuildIntervalMs],
  ['a part of the interval has passed', { sinceDecidedMs: 10 }, docketBuildIntervalMs - 10],
  ['the interval has passed', { sinceDecidedMs: docketBuildIntervalMs + 1 }, 0],
  ['a docket less one transaction waits', { waiting: maxTransactionsPerDocket - 1 }, docketBuildIntervalMs],
  ['a whole docket waits', { waiting: maxTransactionsPerDocket }, 0],
  ['the bytes of a whole docket wait', { waitingBytes: maxDocketBytes }, 0],
])('batch delay when %s', (_, change, expected) => {
  expect(batchDelayMs(rules, { ...inFlight, ...change }, unlimitedBuild)).toBe(expected);
});

test.each([
  ['a transaction has just arrived', {}, 25],
  ['none has arrived for a moment', { sinceArrivalMs: 10 }, 15],
  ['none has arrived for longer', { sinceArrivalMs: 25 }, 0],
  ['submissions are being admitted', { sinceArrivalMs: 25, isAdmitting: true }, 25],
  ['submissions are being admitted for long', { sinceDecidedMs: 300, isAdmitting: true }, 0],
  ['400 wait', { waiting: 400, isAdmitting: true }, 0],
  ['the last decision is 290 ms ago', { sinceDecidedMs: 290 }, 10],
  ['the last decision is 300 ms ago', { sinceDecidedMs: 300 }, 0],
  ['the last docket was small', { lastTransactions: 31 }, 0],
  ['the clock was set back by a minute', { sinceDecidedMs: -60_000, sinceArrivalMs: -60_000 }, 0],
])('batch delay under load when no docket is being stored and %s', (_, change, expected) => {
  expect(batchDelayMs(rules, { ...loaded, ...change }, unlimitedBuild)).toBe(expected);
});

test('an operator may set smaller dockets and shorter delays', () => {
  for (const now of [inFlight, loaded]) {
    expect(batchDelayMs(rules, now, { ...unlimitedBuild, maxTransactions: 3 })).toBe(0);
    expect(batchDelayMs(rules, now, { ...unlimitedBuild, intervalMs: 7 })).toBe(7);
  }
});

test('the policy bounds every delay', () => {
  const backlog = fc.record({
    inFlight: fc.nat(3),
    waiting: fc.nat(2_000),
    waitingBytes: fc.nat(2 * maxDocketBytes),
    sinceDecidedMs: fc.nat(2_000),
    sinceArrivalMs: fc.nat(2_000),
    isAdmitting: fc.boolean(),
    lastTransactions: fc.nat(1_000),
  });
  fc.assert(
    fc.property(backlog, fc.integer({ min: 10, max: 10_000 }), (now, interval) => {
      const delayMs = batchDelayMs({ ...rules, docketBuildIntervalMs: interval }, now, unlimitedBuild);
      expect(delayMs).toBeGreaterThanOrEqual(0);
      expect(delayMs).toBeLessThanOrEqual(Math.max(0, interval - now.sinceDecidedMs));
    }),
  );
});

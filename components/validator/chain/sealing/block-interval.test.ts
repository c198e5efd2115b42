import { expect, test } from 'vitest';
import { defaultPolicy } from '#core/ledger/policy.ts';
import { rulesOf } from '../state/rules.ts';
import { batchDelayMs, unlimitedBuild } from './block-interval.ts';

const rules = rulesOf(defaultPolicy());
const { docketBuildIntervalMs, maxTransactionsPerDocket, maxDocketBytes } = rules;
const few = { inFlight: 1, waiting: 3, waitingBytes: 3_000, sinceDecidedMs: 0 };

test.each([
  ['no docket is being stored', { inFlight: 0 }, 0],
  ['a docket is being stored', {}, docketBuildIntervalMs],
  ['a part of the interval has passed', { sinceDecidedMs: 10 }, docketBuildIntervalMs - 10],
  ['the interval has passed', { sinceDecidedMs: docketBuildIntervalMs + 1 }, 0],
  ['a docket less one transaction waits', { waiting: maxTransactionsPerDocket - 1 }, docketBuildIntervalMs],
  ['a whole docket waits', { waiting: maxTransactionsPerDocket }, 0],
  ['the bytes of a whole docket wait', { waitingBytes: maxDocketBytes }, 0],
])('batch delay when %s', (_, change, expected) => {
  expect(batchDelayMs(rules, { ...few, ...change }, unlimitedBuild)).toBe(expected);
});

test('an operator may set smaller dockets and shorter delays', () => {
  expect(batchDelayMs(rules, few, { ...unlimitedBuild, maxTransactions: 3 })).toBe(0);
  expect(batchDelayMs(rules, few, { ...unlimitedBuild, intervalMs: 7 })).toBe(7);
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  admit,
  emptyLadder,
  type GuessLimit,
  isKnownNetwork,
  knownNetworkLimit,
  knownNetworkMs,
  type Ladder,
  MAX_FAILURES_IN_A_ROW,
  maxCountedNetworks,
  maxKnownNetworks,
  maxNetworkRows,
  type Outcome,
  otherNetworks,
  settle,
  unknownNetworksLimit,
  unlocked,
} from './ladder.ts';
import { defaultLockoutSteps } from './lockout.ts';

const home = '203.0.113.0/24';
const elsewhere = '198.51.100.0/24';
const networkNumber = (number: number) => `2001:db8:${number.toString(16)}::/48`;

/** A record whose attempts are processed sequentially, as with the row lock. */
class Record {
  nowMs = 1_700_000_000_000;
  ladder: Ladder = emptyLadder;
  /** Time and network of the wrong passwords that were checked. */
  readonly checked: { readonly atMs: number; readonly known: boolean; readonly network: string }[] = [];

  attempt(network: string, outcome: Extract<Outcome, 'wrong' | 'right' | 'proved'>) {
    const admission = admit(this.ladder, network, this.nowMs);
    if (admission.kind === 'slowed') return admission.kind;
    const isOpen = admission.kind === 'open';
    const known = isKnownNetwork(this.ladder, network, this.nowMs);
    if (isOpen && outcome === 'wrong') this.checked.push({ atMs: this.nowMs, known, network });
    const settled = settle(
      this.ladder,
      { network, outcome: isOpen ? outcome : 'ignored', nowMs: this.nowMs },
      defaultLockoutSteps,
    );
    this.ladder = settled.ladder;
    return isOpen ? outcome : admission.kind;
  }

  /** Attempts after the wait of the rate limit, so that each one is checked. */
  patient(network: string, times: number): void {
    for (let i = 0; i < times; i++) {
      const admission = admit(this.ladder, network, this.nowMs);
      if (admission.kind === 'slowed') this.nowMs += admission.retryAfterSeconds * 1000;
      this.attempt(network, 'wrong');
    }
  }
}

describe('the lockout ladder', () => {
  it('locks a network at a step and leaves the others open', () => {
    const record = new Record();
    for (let i = 0; i < 5; i++) expect(record.attempt(elsewhere, 'wrong')).toBe('wrong');
    expect(record.attempt(elsewhere, 'right')).toBe('locked');
    expect(record.attempt(home, 'right')).toBe('right');
    expect(record.attempt(elsewhere, 'right')).toBe('locked');
    record.nowMs += 300_000;
    expect(record.attempt(elsewhere, 'wrong')).toBe('wrong');
  });

  it('limits but never locks a network with a sign-in in the last 30 days', () => {
    const record = new Record();
    record.attempt(home, 'right');
    for (let i = 0; i < knownNetworkLimit.burst; i++) expect(record.attempt(home, 'wrong')).toBe('wrong');
    expect(admit(record.ladder, home, record.nowMs)).toEqual({ kind: 'slowed', retryAfterSeconds: 600 });
    record.nowMs += 600_000;
    expect(record.attempt(home, 'right')).toBe('right');
    record.nowMs += knownNetworkMs - 1;
    expect(isKnownNetwork(record.ladder, home, record.nowMs)).toBe(true);
    record.nowMs += 1;
    expect(isKnownNetwork(record.ladder, home, record.nowMs)).toBe(false);
    for (let i = 0; i < 5; i++) record.attempt(home, 'wrong');
    expect(record.attempt(home, 'right')).toBe('locked');
  });

  it('guesses from other networks do not use up the limit of a known network', () => {
    const record = new Record();
    record.attempt(home, 'right');
    for (let i = 0; i < 99; i++) record.attempt(networkNumber(i), 'wrong');
    expect(record.checked).toHaveLength(unknownNetworksLimit.burst);
    expect(record.attempt('192.0.2.0/24', 'right')).toBe('slowed');
    expect(record.attempt(home, 'right')).toBe('right');
  });

  it('closes the account to every network at 100 failures in a row, until it is unlocked', () => {
    const record = new Record();
    record.attempt(home, 'right');
    for (let i = 0; i < 100; i++) record.patient(networkNumber(i), 1);
    expect(record.ladder).toMatchObject({ failures: 100, isClosed: true, unreported: true });
    expect(record.attempt(home, 'right')).toBe('closed');
    record.nowMs += 365 * 86_400_000;
    expect(record.attempt(home, 'right')).toBe('closed');
    record.ladder = unlocked(record.ladder);
    expect(record.attempt(elsewhere, 'wrong')).toBe('wrong');
    expect(record.attempt(home, 'right')).toBe('closed');
    record.ladder = unlocked(record.ladder);
    expect(record.attempt(home, 'right')).toBe('right');
    expect(record.ladder.failures).toBe(0);
  });

  it('an unlock keeps the counts: the next failure continues the ladder', () => {
    const record = new Record();
    for (let i = 0; i < 5; i++) record.attempt(elsewhere, 'wrong');
    record.ladder = unlocked(record.ladder);
    for (let i = 0; i < 5; i++) expect(record.attempt(elsewhere, 'wrong')).toBe('wrong');
    expect(record.ladder.networks.get(elsewhere)).toMatchObject({
      failures: 10,
      lockedUntilMs: record.nowMs + 1_800_000,
    });
  });

  it('counts further networks together when it is full, and never displaces a lock', () => {
    const record = new Record();
    for (let i = 0; i < 5; i++) record.attempt(elsewhere, 'wrong');
    const until = record.ladder.networks.get(elsewhere)?.lockedUntilMs;
    for (let i = 0; i < 60; i++) record.patient(networkNumber(i), 1);
    expect(record.ladder.networks.size).toBe(maxCountedNetworks + 1);
    expect(record.ladder.networks.get(otherNetworks)?.failures).toBeGreaterThan(0);
    expect(record.ladder.networks.get(elsewhere)?.lockedUntilMs).toBe(until);
  });

  it('stores the last 16 networks with a sign-in', () => {
    const record = new Record();
    for (let i = 0; i < 40; i++) {
      record.nowMs += 1000;
      record.attempt(networkNumber(i), 'right');
    }
    const known = [...record.ladder.networks.keys()];
    expect(known).toEqual(Array.from({ length: maxKnownNetworks }, (_, i) => networkNumber(24 + i)));
  });

  it('an attempt without a client address never makes a network known', () => {
    const at = { network: undefined, outcome: 'right', nowMs: 1_700_000_000_000 } as const;
    const { ladder, written } = settle(emptyLadder, at, defaultLockoutSteps);
    expect(written).toBe(otherNetworks);
    expect(isKnownNetwork(ladder, otherNetworks, at.nowMs)).toBe(false);
  });
});

interface Step {
  readonly network: number;
  readonly outcome: 'wrong' | 'right' | 'proved';
  readonly waitMs: number;
}

/** Mostly wrong guesses from up to 65,536 networks, with waits between zero and a month. */
const step: fc.Arbitrary<Step> = fc.record({
  network: fc.oneof(fc.nat(3), fc.nat(65_535)),
  outcome: fc.oneof(
    { weight: 30, arbitrary: fc.constant('wrong' as const) },
    { weight: 1, arbitrary: fc.constantFrom('right' as const, 'proved' as const) },
  ),
  waitMs: fc.oneof(
    { weight: 6, arbitrary: fc.nat(1000) },
    { weight: 3, arbitrary: fc.nat(7_200_000) },
    { weight: 1, arbitrary: fc.nat(40 * 86_400_000) },
  ),
});

/** Maximum number of checked guesses in any window of this length. */
function mostIn(windowMs: number, limit: GuessLimit): number {
  return limit.burst + Math.floor(windowMs / limit.intervalMs);
}

/** Number of guesses by which the worst window exceeds the limit. */
function excessOf(times: readonly number[], limit: GuessLimit): number {
  let worst = 0;
  for (const [first, fromMs] of times.entries()) {
    for (let last = first; last < times.length; last++) {
      const windowMs = (times[last] ?? 0) - fromMs;
      worst = Math.max(worst, last - first + 1 - mostIn(windowMs, limit));
    }
  }
  return worst;
}

describe('over any sequence of attempts from any networks', () => {
  it('guesses stay under the limit, under 100 consecutive failures and within a bounded number of rows', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 50, maxLength: 400 }), (steps) => {
        const record = new Record();
        let inARow = 0;
        for (const { network, outcome, waitMs } of steps) {
          record.nowMs += waitMs;
          const before = record.checked.length;
          const answer = record.attempt(networkNumber(network), outcome);
          inARow = answer === 'right' || answer === 'proved' ? 0 : inARow + record.checked.length - before;
          expect(inARow).toBeLessThanOrEqual(MAX_FAILURES_IN_A_ROW);
          expect(record.ladder.networks.size).toBeLessThanOrEqual(maxNetworkRows);
        }
        const unknown = record.checked.filter(({ known }) => !known).map(({ atMs }) => atMs);
        expect(excessOf(unknown, unknownNetworksLimit)).toBe(0);
        const known = Map.groupBy(
          record.checked.filter((each) => each.known),
          ({ network }) => network,
        );
        for (const guesses of known.values()) {
          const times = guesses.map(({ atMs }) => atMs);
          expect(excessOf(times, knownNetworkLimit)).toBe(0);
        }
      }),
    );
  });

  it('an attacker with a new network for every guess gets 100 guesses, then one per unlock', () => {
    fc.assert(
      fc.property(fc.nat(65_535), fc.integer({ min: 0, max: 5 }), (offset, unlocks) => {
        const record = new Record();
        record.attempt(home, 'right');
        const guessOn = () => {
          for (let i = 0; i < 400; i++) record.patient(networkNumber((offset + i * 7) % 65_536), 1);
        };
        guessOn();
        for (let i = 0; i < unlocks; i++) {
          record.ladder = unlocked(record.ladder);
          guessOn();
        }
        expect(record.checked).toHaveLength(MAX_FAILURES_IN_A_ROW + unlocks);
      }),
      { numRuns: 20 },
    );
  });
});

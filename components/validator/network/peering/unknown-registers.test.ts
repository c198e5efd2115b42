import { describe, expect, test } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import type { Envelope } from '../transport/transport.ts';
import { UnknownRegisters } from './unknown-registers.ts';

const hash = 'ab'.repeat(32);
const mebibyte = 1024 * 1024;

function proposal(registerId: string, change: object = {}): Envelope {
  const header = {
    registerId,
    docketNumber: 0,
    previousHash: hash,
    timestamp: '2026-11-21T10:00:00.0000000+00:00',
    validatorAddress: 'w1',
    transactionIds: [hash],
    merkleRoot: hash,
    logRoot: hash,
    validatorSetHash: hash,
    hash,
    isGenesis: true,
    sizeBytes: 1,
    ...change,
  };
  const value = { hash, merkleRoot: hash, logRoot: hash, timestamp: header.timestamp };
  const said = { kind: 'proposal' as const, height: 0, round: 0, polRound: -1, value };
  const signed = { ...said, validatorId: 'validator-1', signature: '' };
  return { kind: 'proposal', registerId, proposal: signed, header, recordHashes: [hash] };
}

const idOf = (n: number) => n.toString(16).padStart(32, '0');

describe('messages about registers that are not known yet', () => {
  test('are bounded per sender, and leave room for other senders', () => {
    const unknownRegisters = new UnknownRegisters(
      manualClock(0),
      async () => undefined,
      () => {},
    );
    unknownRegisters.bufferEarly('validator-1', proposal(idOf(1)));
    for (let n = 0; n < 2_000; n += 1) {
      unknownRegisters.bufferEarly(
        'validator-2',
        proposal(idOf(n + 2), { genesisConfig: 'x'.repeat(mebibyte / 2) }),
      );
    }
    expect(unknownRegisters.earlyBytes).toBeLessThan(4 * mebibyte);
    expect(unknownRegisters.takeEarly(idOf(1))).toMatchObject([{ from: 'validator-1' }]);
    expect(unknownRegisters.takeEarly(idOf(2_001))).toHaveLength(1);
  });

  test("with invented register ids use no other sender's room", () => {
    const unknownRegisters = new UnknownRegisters(
      manualClock(0),
      async () => undefined,
      () => {},
    );
    unknownRegisters.bufferEarly('validator-1', proposal(idOf(1)));
    for (let n = 0; n < 2_000; n += 1) unknownRegisters.bufferEarly(`validator-x${n}`, proposal(idOf(n + 2)));
    expect(unknownRegisters.takeEarly(idOf(1))).toHaveLength(1);
    expect(unknownRegisters.earlyBytes).toBeLessThan(4 * mebibyte);
  });

  test('are refused for a docket 0 of many transactions', () => {
    const unknownRegisters = new UnknownRegisters(
      manualClock(0),
      async () => undefined,
      () => {},
    );
    unknownRegisters.bufferEarly(
      'validator-1',
      proposal(idOf(1), { transactionIds: Array(10_000).fill(hash) }),
    );
    expect(unknownRegisters.earlyBytes).toBe(0);
  });
});

describe('a register that other validators mention', () => {
  /** The lookups, and a function that advances the time of the timers. */
  function asking(answers: readonly (() => Promise<unknown>)[]) {
    const alarms = new Map<string, () => void>();
    let asked = 0;
    const find = () => {
      asked += 1;
      return answers[asked - 1]?.() ?? Promise.resolve({});
    };
    const unknownRegisters = new UnknownRegisters(manualClock(0), find, (key, _afterMs, callback) =>
      alarms.set(key, callback),
    );
    const fireTimers = async () => {
      const due = [...alarms.values()];
      alarms.clear();
      for (const callback of due) callback();
      await new Promise(setImmediate);
    };
    return { unknownRegisters, fireTimers, asked: () => asked };
  }
  const isNone = async () => undefined;
  const isDown = () => Promise.reject(new Error('away'));

  test('is looked up once more, since the docket that admits this validator may not be stored yet', async () => {
    const { unknownRegisters, fireTimers, asked } = asking([isNone, isNone]);
    unknownRegisters.discover('validator-1', idOf(1));
    for (const times of [1, 2, 2]) {
      await new Promise(setImmediate);
      expect(asked()).toBe(times);
      await fireTimers();
    }
  });

  test('is looked up until the register service answers', async () => {
    const { unknownRegisters, fireTimers, asked } = asking([isDown, isDown, isDown]);
    unknownRegisters.discover('validator-1', idOf(1));
    await new Promise(setImmediate);
    for (let time = 0; time < 6; time += 1) await fireTimers();
    expect(asked()).toBe(4);
  });

  test('causes at most twenty pending lookups, whatever is invented', async () => {
    const { unknownRegisters, fireTimers, asked } = asking(Array.from({ length: 200 }, () => isDown));
    for (let n = 0; n < 200; n += 1) unknownRegisters.discover(`validator-${n}`, idOf(n));
    await new Promise(setImmediate);
    const before = asked();
    await fireTimers();
    expect(before).toBeLessThanOrEqual(20);
    expect(asked() - before).toBeLessThanOrEqual(20);
  });
});

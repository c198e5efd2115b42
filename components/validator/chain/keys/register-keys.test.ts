import { describe, expect, it } from 'vitest';
import { encodeHex } from '#core/encoding/hex.ts';
import { addKey, emptyFilter, wordsOfHex } from '#core/ledger/key-filter.ts';
import { createRandom, type Random } from '#kit/testing/random.ts';
import type { KeySnapshot } from './key-snapshot.ts';
import type { LookupQuery } from './lookup.ts';
import { type KeyedDocket, RegisterKeys } from './register-keys.ts';

interface Sealed {
  readonly txId: string;
  readonly type: 'Action' | 'Control';
  readonly previousTransactionId: string | undefined;
  readonly exclusivePredecessor: boolean;
  readonly replayKey: string | undefined;
}

const idOf = (random: Random) => encodeHex(random.bytes(32));
const replayOf = (random: Random) => encodeHex(random.bytes(16));
const docketOf = (docketNumber: number, transactions: KeyedDocket['transactions']): KeyedDocket => ({
  header: { docketNumber },
  transactions,
});
const nowhere = () => undefined;

/** Transactions of which some follow the given ones. */
function draw(random: Random, before: readonly Sealed[]): Sealed[] {
  return Array.from({ length: random.whole(0, 6) }, () => {
    const follows = before.length > 0 && random.chance(0.4) ? random.pick(before) : undefined;
    const exclusivePredecessor = follows?.type === 'Action';
    return {
      txId: idOf(random),
      type: random.chance(0.8) ? ('Action' as const) : ('Control' as const),
      previousTransactionId: follows?.txId,
      exclusivePredecessor,
      replayKey: exclusivePredecessor ? undefined : replayOf(random),
    };
  });
}

function snapshotOf(dockets: readonly (readonly Sealed[])[], logRoot = ''): KeySnapshot {
  const transactions = dockets.flat();
  const filter = emptyFilter(2 * transactions.length);
  for (const { txId, replayKey, exclusivePredecessor, previousTransactionId: previous } of transactions) {
    addKey(filter, wordsOfHex('id', txId));
    if (replayKey !== undefined) addKey(filter, wordsOfHex('replay', replayKey));
    if (exclusivePredecessor && previous !== undefined) addKey(filter, wordsOfHex('successor', previous));
  }
  return { height: dockets.length, logRoot, transactionCount: transactions.length, filters: [filter] };
}

function queryOf(facts: Partial<LookupQuery>): LookupQuery {
  return { registerId: 'r', transactionId: '', previousTransactionId: '', replayKey: '', pin: '', ...facts };
}

/** Keys that cover the dockets, of which the last ones are not stored. */
function loaded(dockets: readonly (readonly Sealed[])[], stored = dockets.length): RegisterKeys {
  const keys = new RegisterKeys();
  const unstored = dockets.slice(stored).map((each, index) => docketOf(stored + index, each));
  const load = keys.begin(dockets.length, unstored);
  expect(keys.takeOver(load, snapshotOf(dockets.slice(0, stored)), nowhere)).toBe('complete');
  return keys;
}

/** A register, what the register service has of it, and the keys under test. */
class Model {
  readonly #random: Random;
  readonly #keys = new RegisterKeys();
  readonly #dockets: Sealed[][] = [];
  #stored = 0;
  #load: object = {};
  #snapshot: KeySnapshot | undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** One random event. */
  step(): void {
    const acts = [
      ...Array.from({ length: 5 }, () => () => this.#decide()),
      () => this.#store(),
      () => this.#begin(),
      () => this.#complete(),
      () => this.#discard(),
      () => this.#jump(),
    ];
    this.#random.pick(acts)();
  }

  get isAnswering(): boolean {
    return this.#isNew({ transactionId: idOf(this.#random) }, undefined);
  }

  /** Transactions of which a key counts as new. */
  wronglyNew(): readonly Sealed[] {
    return this.#dockets.flat().filter((sealed) => {
      const { txId, previousTransactionId: previous, exclusivePredecessor, replayKey } = sealed;
      const another = { transactionId: idOf(this.#random) };
      const replays = replayKey !== undefined && this.#isNew({ ...another, replayKey }, undefined);
      const follows = exclusivePredecessor && previous !== undefined;
      const forks = follows && this.#isNew({ ...another, previousTransactionId: previous }, 'Action');
      return replays || forks || this.#isNew({ transactionId: txId }, undefined);
    });
  }

  #isNew(facts: Partial<LookupQuery>, type: string | undefined): boolean {
    return this.#keys.answer(this.#dockets.length, queryOf(facts), type) !== undefined;
  }

  #decide(): void {
    const docket = draw(this.#random, this.#dockets.flat().slice(-20));
    this.#keys.add(docketOf(this.#dockets.push(docket) - 1, docket));
  }

  #store(): void {
    this.#stored = this.#random.whole(this.#stored, this.#dockets.length);
  }

  /** The snapshot may be older than the dockets that are known to be stored. */
  #begin(): void {
    const unstored = this.#dockets
      .slice(this.#stored)
      .map((each, index) => docketOf(this.#stored + index, each));
    this.#load = this.#keys.begin(this.#dockets.length, unstored);
    const given = this.#random.chance(0.7) ? this.#stored : this.#random.whole(0, this.#stored);
    this.#snapshot = snapshotOf(this.#dockets.slice(0, given));
  }

  #complete(): void {
    if (this.#snapshot !== undefined) this.#keys.takeOver(this.#load, this.#snapshot, nowhere);
  }

  #discard(): void {
    if (this.#random.chance(0.3)) this.#keys.discard();
  }

  /** Dockets that were not decided here, which the register may or may not report. */
  #jump(): void {
    for (let n = this.#random.whole(1, 3); n > 0; n -= 1) this.#dockets.push(draw(this.#random, []));
    if (this.#random.chance(0.5)) this.#keys.skip();
    this.#stored = this.#dockets.length;
  }
}

describe('the keys of a register', () => {
  const random = createRandom(Number(process.env['CHANCERY_TEST_SEED'] ?? 19));

  it('never call a key new that a decided docket has, in any order of dockets, loads, jumps and drops', () => {
    let answers = 0;
    for (let run = 0; run < 25; run += 1) {
      const model = new Model(random);
      for (let step = 0; step < 40; step += 1) {
        model.step();
        expect(model.wronglyNew()).toEqual([]);
        answers += model.isAnswering ? 1 : 0;
      }
    }
    expect(answers).toBeGreaterThan(50);
  });

  it('call nearly all other keys new', () => {
    const transactions = Array.from({ length: 20_000 }, () => ({
      txId: idOf(random),
      type: 'Action' as const,
      previousTransactionId: undefined,
      exclusivePredecessor: false,
      replayKey: replayOf(random),
    }));
    const keys = loaded([transactions]);
    for (let n = 1; n < 30; n += 1) keys.add(docketOf(n, transactions.slice(0, 2_000)));
    const asked = Array.from({ length: 20_000 }, () =>
      keys.answer(30, queryOf({ transactionId: idOf(random), replayKey: replayOf(random) }), undefined),
    ).filter((answer) => answer === undefined);
    expect(asked.length).toBeLessThan(20_000 * 0.02);
  });

  it('answer only at the height that they cover', () => {
    const dockets = [draw(random, []), draw(random, []), draw(random, [])];
    const keys = loaded(dockets);
    const fresh = queryOf({ transactionId: idOf(random) });
    expect(keys.answer(3, fresh, undefined)).toBeDefined();
    expect([2, 4].map((height) => keys.answer(height, fresh, undefined))).toEqual([undefined, undefined]);
    keys.add(docketOf(4, []));
    expect(keys.isEmpty).toBe(true);
  });

  it('cover dockets that were not stored when they were loaded, and those decided meanwhile', () => {
    const dockets = [draw(random, []), draw(random, []), draw(random, [])];
    const keys = new RegisterKeys();
    const load = keys.begin(2, [docketOf(1, dockets[1] ?? [])]);
    keys.add(docketOf(2, dockets[2] ?? []));
    expect(keys.takeOver(load, snapshotOf(dockets.slice(0, 1)), nowhere)).toBe('complete');
    expect(keys.covers(3)).toBe(true);
  });

  it('refuse a snapshot that leaves a gap, one of another chain, and one of an earlier load', () => {
    const dockets = [draw(random, []), draw(random, [])];
    const keys = new RegisterKeys();
    expect(keys.takeOver(keys.begin(2, []), snapshotOf(dockets.slice(0, 1)), nowhere)).toBe('stale');
    expect(keys.isEmpty).toBe(true);
    const load = keys.begin(2, []);
    expect(keys.takeOver(load, snapshotOf(dockets, 'aa'), () => 'bb')).toBe('divergent');
    expect(keys.takeOver(load, snapshotOf(dockets), nowhere)).toBe('discarded');
    const jumped = keys.begin(2, []);
    keys.skip();
    expect(keys.takeOver(jumped, snapshotOf(dockets), nowhere)).toBe('discarded');
    // unstored dockets with a gap are not kept: the snapshot must cover them
    const gappy = keys.begin(2, [docketOf(0, [])]);
    expect(keys.takeOver(gappy, snapshotOf(dockets.slice(0, 1)), nowhere)).toBe('stale');
  });

  it('disagree with a register service that counts other transactions or is behind its own snapshot', () => {
    const dockets = [draw(random, []), draw(random, []), draw(random, [])];
    const count = dockets.flat().length;
    const keys = loaded(dockets);
    expect(keys.agrees(3, count)).toBe(true);
    expect(keys.agrees(3, count + 1)).toBe(false);
    expect(keys.agrees(2, count)).toBe(false);
    expect([keys.agrees(3, undefined), keys.agrees(9, 1)]).toEqual([true, true]);
    keys.add(docketOf(3, draw(random, [])));
    expect(keys.agrees(4, count + 100)).toBe(false);
  });

  it('know predecessors among the latest dockets, and ask about others and about second successors', () => {
    const parent = { ...draw(random, []), txId: idOf(random), type: 'Action' as const };
    const plain = { previousTransactionId: undefined, exclusivePredecessor: false, replayKey: undefined };
    const child = { txId: idOf(random), type: 'Action' as const, replayKey: undefined };
    const follows = { previousTransactionId: parent.txId, exclusivePredecessor: true };
    const keys = loaded([[]]);
    keys.add(docketOf(1, [{ ...plain, txId: parent.txId, type: 'Action' }]));
    const behind = (previousTransactionId: string) =>
      queryOf({ transactionId: idOf(random), previousTransactionId, replayKey: replayOf(random) });
    expect(keys.answer(2, behind(parent.txId), undefined)).toMatchObject({
      previousKnown: true,
      previousType: 'Action',
    });
    expect(keys.answer(2, behind(idOf(random)), undefined)).toBeUndefined();
    keys.add(docketOf(2, [{ ...child, ...follows }]));
    expect(keys.answer(3, behind(parent.txId), undefined)).toBeUndefined();
  });

  it('take at most 6 bytes a transaction beside a constant part, and none when dropped', () => {
    const transactions = Array.from({ length: 1_000 }, () => ({
      txId: idOf(random),
      type: 'Action' as const,
      previousTransactionId: undefined,
      exclusivePredecessor: false,
      replayKey: replayOf(random),
    }));
    const keys = loaded([[]]);
    const constant = 8_192 * 192 + 40_000;
    for (let n = 1; n <= 200; n += 1) {
      keys.add(docketOf(n, transactions));
      expect(keys.bytes).toBeLessThan(constant + 6 * 1_000 * n);
    }
    keys.discard();
    expect([keys.bytes, keys.isEmpty]).toEqual([0, true]);
  });
});

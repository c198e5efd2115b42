import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '#core/encoding/hex.ts';
import { mayHold, wordsOfHex } from '#core/ledger/key-filter.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { findReplayKey } from '#core/ledger/replay.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  ReadKeysRequestSchema,
  type ReadKeysResponseSchema,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import { buildDocket } from '../../testing/build-docket.ts';
import { contextOf, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { createReadKeys } from './read-keys.ts';

type Part = MessageInitShape<typeof ReadKeysResponseSchema>['part'];
type Sealed = ReturnType<typeof transaction>;

const segmentTransactions = 10;

describe('the snapshot of keys', () => {
  let register: TestRegister;
  let registerId: string;
  let readKeys: ReturnType<typeof createReadKeys>;
  const sealed: { readonly one: Sealed; readonly follows: string | undefined }[] = [];
  const heads: { height: number; logRoot: string; transactions: number }[] = [];

  beforeAll(async () => {
    register = await startTestRegister('readkeys', { segmentTransactions });
    registerId = await register.createRegister();
    readKeys = createReadKeys(register.database);
    for (let n = 0; n < 9; n += 1) await seal(4);
  });
  afterAll(() => register.stop());

  /** Seals transactions, of which some follow the ones before. */
  async function seal(count: number): Promise<void> {
    const items = Array.from({ length: count }, (_, n) => {
      const follows = n % 2 === 0 ? undefined : sealed.at(-1 - n)?.one.txId;
      const previous = follows === undefined ? {} : { previousTransactionId: follows };
      return { one: transaction({ registerId, payload: { n: sealed.length + n }, ...previous }), follows };
    });
    const state = await register.state(registerId);
    const all = items.map(({ one }) => one);
    const bundle = buildDocket(state, all, register.members);
    expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
    sealed.push(...items);
    const { docketNumber, logRoot } = bundle.header;
    heads.push({ height: docketNumber + 1, logRoot, transactions: sealed.length + 1 });
  }

  async function read(validator = 'validator-0', signal = new AbortController().signal): Promise<Part[]> {
    const request = create(ReadKeysRequestSchema, { registerId });
    const parts: Part[] = [];
    for await (const { part } of readKeys(request, { ...contextOf(validator), signal })) parts.push(part);
    return parts;
  }

  /** The filters of a stream, whole. */
  function filtersOf(parts: readonly Part[]): Uint8Array[] {
    const bits: Uint8Array[][] = [];
    for (const part of parts) {
      if (part?.case !== 'filter') continue;
      const { filter = 0, bits: some = new Uint8Array() } = part.value;
      bits[filter] = [...(bits[filter] ?? []), some];
    }
    return bits.map((some) => Buffer.concat(some));
  }

  const holds = (filters: readonly Uint8Array[], kind: 'id' | 'successor' | 'replay', key: string) =>
    filters.some((filter) => mayHold(filter, wordsOfHex(kind, key)));

  it('has every key of sealed and open segments, and begins with the head that it covers', async () => {
    const parts = await read();
    const [begin] = parts;
    const head = heads.at(-1);
    expect(begin).toMatchObject({
      case: 'begin',
      value: { height: BigInt(head?.height ?? 0), transactionCount: BigInt(sealed.length + 1), filters: 4 },
    });
    const root = begin?.case === 'begin' ? begin.value.logRoot : undefined;
    expect(encodeHex(root ?? new Uint8Array())).toBe(head?.logRoot);
    expect(parts.at(-1)?.case).toBe('end');
    const filters = filtersOf(parts);
    expect(filters).toHaveLength(4);
    for (const { one, follows } of sealed) {
      expect(holds(filters, 'id', one.txId)).toBe(true);
      if (follows === undefined)
        expect(holds(filters, 'replay', findReplayKey(parseRecord(one.record)) ?? '')).toBe(true);
      else expect(holds(filters, 'successor', follows)).toBe(true);
    }
    expect(holds(filters, 'id', 'ef'.repeat(32))).toBe(false);
  });

  it('covers its head while dockets are stored at the same time', async () => {
    const known = sealed.length;
    const reading = Array.from({ length: 6 }, (_, n) => read(`validator-${n}`));
    for (let n = 0; n < 6; n += 1) await seal(5);
    for (const parts of await Promise.all(reading)) {
      const [begin] = parts;
      const height = begin?.case === 'begin' ? begin.value.height : 0n;
      const covered = heads.find((head) => BigInt(head.height) === height)?.transactions ?? 0;
      expect(covered).toBeGreaterThan(known);
      const filters = filtersOf(parts);
      const missing = sealed.slice(0, covered - 1).filter(({ one }) => !holds(filters, 'id', one.txId));
      expect(missing).toEqual([]);
    }
  });

  it('sends a large filter in parts of at most 1 MiB', async () => {
    const { database } = register;
    const { rows } = await database.pool.query('select bits from segment_filters where segment = 0');
    await database.pool.query('update segment_filters set bits = $1 where segment = 0', [
      Buffer.alloc(2_500_000, 7),
    ]);
    const parts = await read();
    const first = parts.flatMap((part) =>
      part?.case === 'filter' && part.value.filter === 0 ? part.value : [],
    );
    expect(first.map(({ bits }) => bits?.length)).toEqual([1_048_576, 1_048_576, 402_848]);
    expect(new Set(first.map(({ sizeBytes }) => sizeBytes))).toEqual(new Set([2_500_000]));
    await database.pool.query('update segment_filters set bits = $1 where segment = 0', [rows[0]?.bits]);
  });

  it('fails when the keys are fewer than the head counts', async () => {
    const { database } = register;
    await database.pool.query('update register_heads set segment_count = segment_count + 1');
    await expect(read()).rejects.toMatchObject({ kind: 'internal' });
    await database.pool.query('update register_heads set segment_count = segment_count - 1');
    expect((await read()).at(-1)?.case).toBe('end');
  });

  it('is read once at a time by a validator, and by as many at once as the limit says', async () => {
    const limited = createReadKeys(register.database, { streams: 2, reading: 2 });
    const open = (validator: string, signal = new AbortController().signal) => {
      const request = create(ReadKeysRequestSchema, { registerId });
      return limited(request, { ...contextOf(validator), signal })[Symbol.asyncIterator]();
    };
    const [one, two, three, four] = ['a', 'b', 'c', 'd'].map((name) => open(`validator-${name}`));
    await one?.next();
    await two?.next();
    await expect(open('validator-a').next()).rejects.toMatchObject({
      code: 'KEYS_BUSY',
      kind: 'unavailable',
    });
    let started = 0;
    const third = three?.next().then(() => (started += 1));
    const cancelled = new AbortController();
    const fifth = open('validator-e', cancelled.signal).next();
    const fourth = four?.next().then(() => (started += 1));
    cancelled.abort(new Error('cancelled'));
    await expect(fifth).rejects.toThrow('cancelled');
    expect(started).toBe(0);
    await one?.return?.();
    await third;
    expect(started).toBe(1);
    await two?.return?.();
    await fourth;
    await Promise.all([three?.return?.(), four?.return?.()]);
    await waitFor(async () => (await read('validator-e')).length > 0);
  });

  it('is read by others while some take nothing of what was read for them', async () => {
    const stalled = Array.from({ length: 5 }, (_, n) => {
      const request = create(ReadKeysRequestSchema, { registerId });
      return readKeys(request, contextOf(`validator-stalled-${n}`))[Symbol.asyncIterator]();
    });
    for (const stream of stalled) {
      expect(await stream.next()).toMatchObject({ value: { part: { case: 'begin' } } });
      expect(await stream.next()).toMatchObject({ value: { part: { case: 'filter' } } });
    }
    expect((await read('validator-reading', AbortSignal.timeout(10_000))).at(-1)?.case).toBe('end');
    for (const stream of stalled) await stream.return?.();
    expect((await read('validator-stalled-0')).at(-1)?.case).toBe('end');
  });

  it('reads as many filters at once as the limit says, and a stream that ends does not wait for its turn', async () => {
    const limited = createReadKeys(register.database, { streams: 10, reading: 1 });
    const open = (signal: AbortSignal, n: number) => {
      const request = create(ReadKeysRequestSchema, { registerId });
      return limited(request, { ...contextOf(`validator-${n}`), signal })[Symbol.asyncIterator]();
    };
    const cancelled = new AbortController();
    const first = open(new AbortController().signal, 0);
    const others = [1, 2].map((n) => open(cancelled.signal, n));
    for (const stream of [first, ...others]) await stream.next();
    const client = await register.database.pool.connect();
    try {
      await client.query('begin');
      await client.query('lock table segment_filters in access exclusive mode');
      const filter = first.next();
      // A call that reads from the database ends only after the lock does.
      const waiting = others.map((stream) => stream.next());
      cancelled.abort(new Error('cancelled'));
      for (const each of waiting) await expect(each).rejects.toThrow('cancelled');
      await client.query('commit');
      expect(await filter).toMatchObject({ value: { part: { case: 'filter' } } });
    } finally {
      client.release();
    }
    await first.return?.();
    expect((await read('validator-1')).at(-1)?.case).toBe('end');
  });

  it('does not exist for another register', async () => {
    for (const wrong of ['f'.repeat(32), 'nothing', '']) {
      const stream = readKeys(create(ReadKeysRequestSchema, { registerId: wrong }), contextOf('validator-0'));
      await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({
        code: 'REGISTER_NOT_FOUND',
      });
    }
  });
});

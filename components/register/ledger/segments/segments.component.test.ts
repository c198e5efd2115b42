import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { findReplayKey } from '#core/ledger/replay.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { createRandom } from '#kit/testing/random.ts';
import { assembleLedger, type Ledger } from '../../ledger.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { startTestRegister, type TestRegister, testSettings } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { createLookup } from '../lookup/store.ts';
import { violationsOf, type WriteResult } from '../writing/write.ts';
import { createSegments } from './segments.ts';
import { buildFilter, findFilter } from './store.ts';

type Signed = ReturnType<typeof transaction>;
type Fault = 'VAL_CHAIN_004' | 'VAL_CHAIN_FORK' | 'VAL_REPLAY_001';

const seed = Number(process.env['CHANCERY_TEST_SEED'] ?? 20_261_122);
const segmentTransactions = 9;
const faults: readonly Fault[] = ['VAL_CHAIN_004', 'VAL_CHAIN_FORK', 'VAL_REPLAY_001'];

describe(`keys of a register in segments, seed ${seed}`, () => {
  let register: TestRegister;
  let registerId: string;
  let signed = 0;
  const random = createRandom(seed);
  /** All sealed transactions, the reference model of the test. */
  const sealed: { one: Signed; payload: object; follows: string | undefined }[] = [];
  const unfollowed: string[] = [];

  beforeAll(async () => {
    register = await startTestRegister('segments', { segmentTransactions });
    registerId = await register.createRegister();
  });
  afterAll(() => register.stop());

  function sign(payload: object, follows: string | undefined) {
    signed += 1;
    const createdAt = formatLedgerTimestamp(1_767_225_600_000_000n + BigInt(signed) * 1_000_000n);
    const previous = follows !== undefined && { previousTransactionId: follows };
    return { one: transaction({ registerId, payload, createdAt, ...previous }), payload, follows };
  }
  type Item = ReturnType<typeof sign>;

  const another = (): Ledger =>
    assembleLedger({
      ...register,
      verifier: createVerifier(nodeEd25519()),
      bus: { publish: () => undefined },
      settings: testSettings,
      segmentTransactions,
    });

  function fresh(): Item {
    const at = unfollowed.length === 0 || random.chance(0.5) ? -1 : random.whole(0, unfollowed.length - 1);
    const [follows] = at < 0 ? [] : unfollowed.splice(at, 1);
    return sign({ n: signed }, follows);
  }

  /** A transaction that repeats a sealed key; undefined when there is none to repeat. */
  function repeating(fault: Fault): Item | undefined {
    const followers = sealed.filter(
      ({ follows }) => (follows !== undefined) === (fault === 'VAL_CHAIN_FORK'),
    );
    const candidates = fault === 'VAL_CHAIN_004' ? sealed : followers;
    if (candidates.length === 0) return undefined;
    const found = random.pick(candidates);
    if (fault === 'VAL_CHAIN_004') return found;
    return fault === 'VAL_CHAIN_FORK' ? sign({ n: signed }, found.follows) : sign(found.payload, undefined);
  }

  /** A repeated transaction repeats its other key too, and the open segment's indexes are checked in no order. */
  function repeatedBy({ follows }: Item, fault: Fault | undefined): readonly (Fault | undefined)[] {
    if (fault !== 'VAL_CHAIN_004') return [fault];
    return [fault, follows === undefined ? 'VAL_REPLAY_001' : 'VAL_CHAIN_FORK'];
  }

  async function write(ledger: Ledger, items: readonly Item[]): Promise<WriteResult> {
    const bundle = buildDocket(
      await register.state(registerId),
      items.map(({ one }) => one),
      register.members,
    );
    return ledger.writeDocket(bundle);
  }

  function keep(items: readonly Item[]): void {
    sealed.push(...items);
    unfollowed.push(...items.map(({ one }) => one.txId));
  }

  /** Submits a docket of new transactions, with `bad` somewhere among them. */
  async function step(ledger: Ledger, fault: Fault | undefined): Promise<void> {
    const bad = fault && repeating(fault);
    const before = [...unfollowed];
    // no valid transaction follows the bad one, which may come after it
    if (bad !== undefined)
      unfollowed.splice(0, unfollowed.length, ...before.filter((id) => id !== bad.one.txId));
    const good = Array.from({ length: random.whole(1, 12) }, fresh);
    const result = await write(ledger, random.shuffle(bad === undefined ? good : [...good, bad]));
    if (bad === undefined) {
      expect(result).toMatchObject({ outcome: 'stored' });
      keep(good);
    } else {
      const codes = violationsOf(result).map(({ code }) => code);
      expect(codes).toHaveLength(1);
      expect(repeatedBy(bad, fault)).toContain(codes[0]);
      unfollowed.splice(0, unfollowed.length, ...before);
    }
  }

  it('refuses exactly the transactions that repeat a sealed key, by comparison with a list of all', async () => {
    let replica = another();
    for (let n = 0; n < 120; n += 1) {
      if (random.chance(0.1)) {
        await replica.stop();
        replica = another();
      }
      if (random.chance(0.3)) await random.pick([register.ledger, replica]).segments.settled();
      const fault = random.chance(0.4) ? random.pick(faults) : undefined;
      await step(random.pick([register.ledger, replica]), fault);
    }
    await replica.stop();
    expect((await register.state(registerId)).segment).toBeGreaterThan(30);
  });

  it('stores a docket once for concurrent writes of two processes', async () => {
    const replica = another();
    for (let round = 0; round < 5; round += 1) {
      const items = Array.from({ length: segmentTransactions }, fresh);
      const bundle = buildDocket(
        await register.state(registerId),
        items.map(({ one }) => one),
        register.members,
      );
      const results = await Promise.all([register.ledger, replica].map((one) => one.writeDocket(bundle)));
      expect(results.map(({ outcome }) => outcome).toSorted()).toEqual(['replayed', 'stored']);
      keep(items);
    }
    await replica.stop();
    const twice = await register.database.pool.query(
      'select tx_id from transaction_ids group by register_no, tx_id having count(*) > 1',
    );
    expect(twice.rows).toEqual([]);
  });

  it.each(['with filters', 'without any'])('finds every key in every segment, %s', async (how) => {
    const { database, runtime } = register;
    const segments = createSegments({ database, ...runtime });
    if (how === 'with filters') {
      const state = await register.state(registerId);
      segments.of(state);
      await segments.settled();
      expect(segments.named(registerId).from).toBe(state.segment);
    }
    const replayOf = ({ one }: Item) => findReplayKey(parseRecord(one.record)) ?? '';
    const questions = sealed.map((item) => {
      const { one, follows } = item;
      const replayKey = follows === undefined ? replayOf(item) : '';
      return { registerId, txId: one.txId, previousTxId: follows ?? '', replayKey, pin: '' };
    });
    const answers = await createLookup(database.read, segments)(questions);
    for (const [index, answer] of answers.entries()) {
      const { one, follows } = sealed[index] as Item;
      const id = Buffer.from(one.txId, 'hex');
      expect(answer.docketNumber).not.toBeNull();
      expect(answer.successor).toEqual(follows === undefined ? null : id);
      expect(answer.previousType).toBe(follows === undefined ? null : 'Action');
      expect(answer.replay).toEqual(follows === undefined ? id : null);
    }
    const unknown = sign({ n: signed }, undefined);
    const [none] = await createLookup(
      database.read,
      segments,
    )([
      {
        registerId,
        txId: unknown.one.txId,
        previousTxId: unknown.one.txId,
        replayKey: replayOf(unknown),
        pin: '',
      },
    ]);
    expect(none).toMatchObject({ leaf: null, previousType: null, successor: null, replay: null });
    await segments.stop();
    for (const { one } of random.shuffle(sealed).slice(0, 20)) {
      const found = await register.call('GET', `/api/registers/${registerId}/transactions/${one.txId}`, {
        token: 'admin',
      });
      expect(found.body).toMatchObject({ txId: one.txId, status: 'confirmed' });
    }
  });

  it('caches the filters that fit, and discards those of a restored register', async () => {
    const { database, runtime } = register;
    const state = await register.state(registerId);
    const segments = createSegments({ database, ...runtime, mostBytes: 100 });
    segments.of(state);
    await segments.settled();
    const { from } = segments.named(registerId);
    expect(from).toBeGreaterThan(0);
    expect(from).toBeLessThan(state.segment);
    expect(segments.of({ ...state, segment: from - 1 }).from).toBe(0);
    await segments.stop();
  });

  it('evicts filters of idle registers only', async () => {
    const { database, runtime } = register;
    const state = await register.state(registerId);
    const clock = manualClock(0);
    const segments = createSegments({ database, clock, log: runtime.log, mostBytes: 100 });
    // its segments hold the same keys, as far as a filter can tell
    const other = { ...state, registerId: 'other' };
    const knownOf = async (one: typeof state) => {
      segments.of(one);
      await segments.settled();
      return segments.named(one.registerId).from;
    };
    const first = await knownOf(state);
    expect(first).toBeGreaterThan(0);
    for (let turn = 0; turn < 3; turn += 1) {
      expect([await knownOf(other), await knownOf(state)]).toEqual([0, first]);
      clock.advance(400_000);
    }
    expect(await knownOf(other)).toBe(0);
    clock.advance(600_000);
    expect([await knownOf(other), segments.named(registerId).from]).toEqual([first, 0]);
    await segments.stop();
  });

  it('builds the same filter in every process', async () => {
    const { database } = register;
    const { registerNo, segment } = await register.state(registerId);
    const kept = await findFilter(database.read, registerNo, segment - 1);
    await database.pool.query('delete from segment_filters');
    expect(await buildFilter(database, registerNo, segment - 1)).toEqual(kept);
    expect(await findFilter(database.read, registerNo, segment - 1)).toEqual(kept);
  });
});

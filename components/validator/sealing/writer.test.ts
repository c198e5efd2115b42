import { describe, expect, it } from 'vitest';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { RegisterFacts, SealedDocket, WriteAnswer } from './ports.ts';
import { Scheduler } from './scheduler.ts';
import { DocketWriter } from './writer.ts';

const registerId = 'ab'.repeat(16);

function sealed(docketNumber: number): SealedDocket {
  const header = { docketNumber, hash: `hash-${docketNumber}` } as DocketHeader;
  return { docket: { header, transactions: [] }, certificate: {} as Certificate };
}

/** A register service of which only the height matters, and a clock that a test moves. */
function openWriter(height = 0) {
  const clock = manualClock(1_000_000);
  const scheduler = new Scheduler(clock);
  const gate = Promise.withResolvers<void>();
  const store = {
    height,
    headHash: (at: number) => `hash-${at - 1}`,
    asked: 0,
    isDown: false,
    /** What is said of a docket that comes before its turn; it waits for that when absent. */
    early: undefined as WriteAnswer['outcome'] | 'away' | undefined,
    opened: Promise.resolve(),
    hold() {
      store.opened = gate.promise;
    },
    release: gate.resolve,
  };
  const written: number[] = [];
  const stored: number[] = [];
  const attested: (readonly string[] | undefined)[] = [];
  const refused: WriteAnswer[] = [];
  const writer = new DocketWriter({
    registerId,
    scheduler,
    log: testRuntime('validator').log,
    nowMs: () => clock.nowMs(),
    ledger: {
      async writeDocket({ docket }) {
        const { docketNumber } = docket.header;
        if (store.isDown) throw new Error('gone');
        written.push(docketNumber);
        const { early } = store;
        if (docketNumber > store.height && early !== undefined) {
          if (early === 'away') throw new Error('gone');
          return { outcome: early, height: store.height, refusals: [] };
        }
        await store.opened;
        const outcome =
          docketNumber < store.height ? 'replayed' : docketNumber > store.height ? 'out-of-order' : 'stored';
        if (outcome === 'stored') store.height += 1;
        return { outcome, height: store.height, refusals: [] };
      },
      async findRegister() {
        store.asked += 1;
        if (store.isDown) throw new Error('gone');
        return { height: store.height, headHash: store.headHash(store.height) } as RegisterFacts;
      },
    },
    onStored: (each, names) => {
      stored.push(each.docket.header.docketNumber);
      attested.push(names);
    },
    onRefused: (_each, answer) => void refused.push(answer),
  });
  const settle = async () => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  };
  const pass = async (ms: number) => {
    clock.advance(ms);
    scheduler.run();
    await settle();
  };
  return { writer, store, written, stored, attested, refused, pass, settle, scheduler };
}

const none = Promise.resolve(undefined);
const vote = (validatorId: string, docketHash: string) => ({ validatorId, docketHash }) as ConsensusVote;

describe('a member whose task it is', () => {
  it('stores at once and in order, with the attestations that have come', async () => {
    const { writer, written, stored, attested, settle } = openWriter();
    writer.enqueue(sealed(0), Promise.resolve(vote('validator-0', 'hash-0')), 0);
    writer.attest(0, vote('validator-1', 'hash-0'));
    writer.attest(0, vote('validator-2', 'another'));
    writer.enqueue(sealed(1), none, 0);
    await settle();
    expect(written).toEqual([0, 1]);
    expect(stored).toEqual([0, 1]);
    expect(attested).toEqual([['validator-0', 'validator-1'], []]);
  });

  it('hands the next one over while it stores the one before', async () => {
    const { writer, store, written, stored, attested, settle } = openWriter();
    store.hold();
    for (const number of [0, 1, 2]) {
      writer.enqueue(sealed(number), Promise.resolve(vote(`validator-${number}`, `hash-${number}`)), 0);
    }
    await settle();
    expect(written).toEqual([0, 1]);
    expect([stored, writer.inFlight]).toEqual([[], 3]);
    store.release();
    await settle();
    expect(written).toEqual([0, 1, 2]);
    expect(stored).toEqual([0, 1, 2]);
    expect(attested).toEqual([['validator-0'], ['validator-1'], ['validator-2']]);
  });

  it('hands it over again when it came too early, or nobody knows what came of it', async () => {
    for (const early of ['out-of-order', 'invalid', 'divergent', 'away'] as const) {
      const { writer, store, written, stored, refused, settle } = openWriter();
      store.hold();
      store.early = early;
      writer.enqueue(sealed(0), none, 0);
      await settle();
      writer.enqueue(sealed(1), none, 0);
      await settle();
      expect(written).toEqual([0, 1]);
      store.early = undefined;
      store.release();
      await settle();
      expect(written).toEqual([0, 1, 1]);
      expect([stored, refused]).toEqual([[0, 1], []]);
    }
  });

  it('hands nothing over ahead that is the task of another member', async () => {
    const { writer, store, written, settle } = openWriter();
    store.hold();
    writer.enqueue(sealed(0), none, 0);
    writer.enqueue(sealed(1), none, 1_000);
    writer.enqueue(sealed(2), none, 0);
    await settle();
    expect(written).toEqual([0]);
  });

  it('takes nothing else for stored where the register service said so of all before the answer came', async () => {
    const { writer, store, written, stored, settle } = openWriter();
    store.hold();
    writer.enqueue(sealed(0), none, 0);
    await settle();
    writer.settle(1);
    writer.enqueue(sealed(1), none, 0);
    expect(stored).toEqual([0]);
    store.release();
    await settle();
    expect(written).toEqual([0, 1]);
    expect(stored).toEqual([0, 1]);
    expect(writer.size).toBe(0);
  });

  it('tries again until the register service is back', async () => {
    const { writer, store, stored, pass, settle } = openWriter();
    store.isDown = true;
    writer.enqueue(sealed(0), none, 0);
    await settle();
    await pass(100);
    expect(stored).toEqual([]);
    store.isDown = false;
    await pass(5_000);
    expect(stored).toEqual([0]);
  });

  it('waits for the docket before its own, and goes on when that is said to be stored', async () => {
    const { writer, store, written, stored, settle } = openWriter();
    writer.enqueue(sealed(0), none, 1_000);
    writer.enqueue(sealed(1), none, 0);
    await settle();
    expect(written).toEqual([]);
    expect(writer.inFlight).toBe(2);
    store.height = 1;
    writer.hear(1);
    await settle();
    expect(written).toEqual([1]);
    expect(stored).toEqual([0, 1]);
    expect(writer.inFlight).toBe(0);
  });

  it('takes no harm from a rumour that is not true', async () => {
    const { writer, store, written, stored, pass, settle } = openWriter();
    writer.enqueue(sealed(0), none, 1_000);
    writer.enqueue(sealed(1), none, 0);
    writer.hear(9_999);
    await settle();
    expect(written).toEqual([1]);
    expect(stored).toEqual([]);
    await pass(1_000);
    await pass(100);
    await pass(1_000);
    expect(stored).toEqual([0, 1]);
    expect(store.height).toBe(2);
  });
});

describe('a member that follows', () => {
  it('finds out that another one has stored it, and asks once for many', async () => {
    const { writer, store, written, stored, attested, pass, settle } = openWriter();
    for (let number = 0; number < 5; number += 1) writer.enqueue(sealed(number), none, 2_000);
    store.height = 5;
    for (let number = 1; number <= 5; number += 1) writer.hear(number);
    await settle();
    expect(store.asked).toBe(0);
    expect(writer.inFlight).toBe(0);
    await pass(500);
    expect(store.asked).toBe(1);
    expect(stored).toEqual([0, 1, 2, 3, 4]);
    expect(attested).toEqual([undefined, undefined, undefined, undefined, undefined]);
    expect(written).toEqual([]);
  });

  it('stores it itself when the head stands still', async () => {
    const { writer, written, stored, pass } = openWriter();
    writer.enqueue(sealed(0), none, 2_000);
    await pass(1_999);
    expect(written).toEqual([]);
    await pass(1);
    expect(written).toEqual([0]);
    expect(stored).toEqual([0]);
  });

  it('asks at once when somebody waits', async () => {
    const { writer, store, stored, settle } = openWriter();
    writer.enqueue(sealed(0), none, 2_000);
    store.height = 1;
    writer.ask();
    await settle();
    expect(stored).toEqual([0]);
  });

  it('stops when the register service holds another docket there', async () => {
    const { writer, store, refused, stored, pass } = openWriter();
    writer.enqueue(sealed(0), none, 1_000);
    store.height = 1;
    store.headHash = () => 'another';
    await pass(1_000);
    expect(refused).toMatchObject([{ outcome: 'divergent', height: 1 }]);
    expect(stored).toEqual([]);
    writer.enqueue(sealed(1), none, 0);
    await pass(10_000);
    expect(writer.size).toBe(2);
  });
});

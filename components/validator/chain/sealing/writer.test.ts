import { describe, expect, it } from 'vitest';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { Scheduler } from '#kit/clock/timers.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { RegisterFacts, SealedDocket, WriteAnswer } from './ports.ts';
import { DocketWriter } from './writer.ts';

const registerId = 'ab'.repeat(16);

function sealed(docketNumber: number): SealedDocket {
  const header = { docketNumber, hash: `hash-${docketNumber}` } as DocketHeader;
  return { docket: { header, transactions: [] }, certificate: {} as Certificate };
}

/** A register service of which only the height matters, and a manual clock. */
function openWriter(height = 0) {
  const clock = manualClock(1_000_000);
  const scheduler = new Scheduler(clock);
  const gate = Promise.withResolvers<void>();
  const store = {
    height,
    headHash: (at: number) => `hash-${at - 1}`,
    asked: 0,
    isDown: false,
    /** The answer about a docket that arrives early; the call waits for its turn when absent. */
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

describe('the designated writer of a docket', () => {
  it('stores at once and in order, with the attestations received so far', async () => {
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

  it('sends the next docket while the previous one is being stored', async () => {
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

  it('sends it again when it was too early, or when its outcome is unknown', async () => {
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

  it('does not send a docket ahead that another member writes', async () => {
    const { writer, store, written, settle } = openWriter();
    store.hold();
    writer.enqueue(sealed(0), none, 0);
    writer.enqueue(sealed(1), none, 1_000);
    writer.enqueue(sealed(2), none, 0);
    await settle();
    expect(written).toEqual([0]);
  });

  it('settles only confirmed dockets when a report of all arrives before the answer', async () => {
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

  it('retries until the register service is back', async () => {
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

  it('waits for the previous docket, and continues when it is reported stored', async () => {
    const { writer, store, written, stored, settle } = openWriter();
    writer.enqueue(sealed(0), none, 1_000);
    writer.enqueue(sealed(1), none, 0);
    await settle();
    expect(written).toEqual([]);
    expect(writer.inFlight).toBe(2);
    store.height = 1;
    writer.onReportedHeight(1);
    await settle();
    expect(written).toEqual([1]);
    expect(stored).toEqual([0, 1]);
    expect(writer.inFlight).toBe(0);
  });

  it('is not harmed by a false report', async () => {
    const { writer, store, written, stored, pass, settle } = openWriter();
    writer.enqueue(sealed(0), none, 1_000);
    writer.enqueue(sealed(1), none, 0);
    writer.onReportedHeight(9_999);
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

describe('a fallback writer', () => {
  it('detects that another member has stored it, with one request for many', async () => {
    const { writer, store, written, stored, attested, pass, settle } = openWriter();
    for (let number = 0; number < 5; number += 1) writer.enqueue(sealed(number), none, 2_000);
    store.height = 5;
    for (let number = 1; number <= 5; number += 1) writer.onReportedHeight(number);
    await settle();
    expect(store.asked).toBe(0);
    expect(writer.inFlight).toBe(0);
    await pass(500);
    expect(store.asked).toBe(1);
    expect(stored).toEqual([0, 1, 2, 3, 4]);
    expect(attested).toEqual([undefined, undefined, undefined, undefined, undefined]);
    expect(written).toEqual([]);
  });

  it('stores it itself when the head does not advance', async () => {
    const { writer, written, stored, pass } = openWriter();
    writer.enqueue(sealed(0), none, 2_000);
    await pass(1_999);
    expect(written).toEqual([]);
    await pass(1);
    expect(written).toEqual([0]);
    expect(stored).toEqual([0]);
  });

  it('asks at once when a caller waits', async () => {
    const { writer, store, stored, settle } = openWriter();
    writer.enqueue(sealed(0), none, 2_000);
    store.height = 1;
    writer.verifyNow();
    await settle();
    expect(stored).toEqual([0]);
  });

  it('stops when the register service holds another docket at that height', async () => {
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

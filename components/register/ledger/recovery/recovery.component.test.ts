import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseStoredEvent } from '#core/events/register-events.ts';
import { type ManualClock, manualClock } from '#kit/clock/clock.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { Validators } from '../../clients/validators.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import type { SyncHealth } from './jobs.ts';

let register: TestRegister;
let clock: ManualClock;
/** The answers of the fake. */
let given: Validators['readDockets'];

beforeAll(async () => {
  clock = manualClock(Date.now());
  register = await startTestRegister('recovery', { members: 4, spare: 1, clock });
  given = register.validators.readDockets;
});
afterAll(() => register.stop());

type Health = Omit<SyncHealth, 'checkedAtMs'> & { readonly checkedAt: string | null };

async function health(query = ''): Promise<{ status: number; body: Health }> {
  const { status, body } = await register.call('GET', `/health/sync${query}`);
  return { status, body };
}

async function entryOf(registerId: string) {
  const { body } = await health();
  return body.registers.find((one) => one.registerId === registerId);
}

/** Sets what the validators report and hold of a register. */
function hold(registerId: string, held: readonly DocketBundle[]): void {
  const { heights, dockets: all } = register.validators.history;
  heights.set(registerId, (held.at(-1)?.header.docketNumber ?? -1) + 1);
  all.splice(0, all.length, ...held);
  register.ledger.recovery.wake();
}

async function until(registerId: string, status: string) {
  return waitFor(
    async () => {
      const entry = await entryOf(registerId);
      return entry?.status === status ? entry : undefined;
    },
    { what: `${registerId} ${status}`, deadlineMs: 60_000 },
  );
}

describe('GET /health/sync', () => {
  it('reports to anonymous callers that nothing is missing', async () => {
    const registerId = await register.createRegister();
    register.ledger.recovery.wake();
    const entry = await until(registerId, 'synced');
    expect(entry).toEqual({
      registerId,
      status: 'synced',
      currentDocket: 0,
      targetDocket: 0,
      hasGenesis: true,
      progressPercent: 100,
      docketsProcessed: 0,
      lastError: null,
      isStale: false,
    });
    const { status, body } = await health();
    expect([status, body.status]).toEqual([200, 'synced']);
    expect(body.checkedAt).toMatch(/^\d{4}-.*Z$/);
    expect((await health('?strict=2')).status).toBe(400);
  });

  it('recovers 2,000 dockets from a source that pauses for 15 s', { timeout: 120_000 }, async () => {
    const registerId = await register.createRegister('Behind');
    const missing = await register.proposeMore(registerId, 2_000);
    const stopped = Promise.withResolvers<void>();
    const again = Promise.withResolvers<void>();
    register.validators.readDockets = async function* (_at, { from }) {
      for (const bundle of missing.slice(from - 1)) {
        if (bundle.header.docketNumber === 1_000) {
          stopped.resolve();
          await again.promise;
        }
        yield bundle;
      }
    };
    const seen: number[] = [];
    const watch = async () => {
      const entry = await entryOf(registerId);
      if (entry?.status === 'recovering') seen.push(entry.progressPercent);
      return entry;
    };
    hold(registerId, missing);
    await Promise.race([stopped.promise, until(registerId, 'stalled')]);
    const before = await waitFor(async () => {
      const entry = await watch();
      return entry?.currentDocket === 999 ? entry : undefined;
    });
    expect(before).toMatchObject({ status: 'recovering', targetDocket: 2_000, isStale: false });
    expect((await health()).body.status).toBe('recovering');
    clock.advance(10_000);
    expect((await watch())?.isStale).toBe(false);
    clock.advance(5_000);
    expect(await watch()).toMatchObject({ status: 'recovering', isStale: true, currentDocket: 999 });
    expect((await health('?strict=1')).status).toBe(200);
    again.resolve();
    const after = await waitFor(
      async () => {
        const entry = await watch();
        return entry?.status === 'synced' ? entry : undefined;
      },
      { what: 'the register to be synced', deadlineMs: 60_000 },
    );
    expect(after).toMatchObject({
      currentDocket: 2_000,
      progressPercent: 100,
      docketsProcessed: 2_000,
      isStale: false,
      lastError: null,
    });
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(Math.max(...seen)).toBeLessThanOrEqual(100);
    expect((await register.state(registerId)).head?.hash).toBe(missing.at(-1)?.header.hash);
    register.validators.readDockets = given;
  });

  it('gives up sources that send wrong dockets, stalls after three, and retries', async () => {
    const registerId = await register.createRegister('Lied to');
    const [first, ...rest] = await register.proposeMore(registerId, 3);
    if (first === undefined) throw new Error('no docket');
    const asked: string[] = [];
    const lies: DocketBundle[] = [
      { ...first, header: { ...first.header, hash: '00'.repeat(32) } },
      { ...first, certificate: { ...first.certificate, signatures: first.certificate.signatures.slice(1) } },
      { ...first, transactions: first.transactions.map((one) => ({ ...one, payload: Buffer.from('{}') })) },
    ];
    register.validators.readDockets = async function* (at) {
      asked.push(at.validatorId);
      yield lies[(asked.length - 1) % lies.length] ?? first;
    };
    hold(registerId, [first, ...rest]);
    const stalled = await until(registerId, 'stalled');
    expect(asked).toHaveLength(3);
    expect(new Set(asked).size).toBe(3);
    expect(stalled).toMatchObject({ currentDocket: 0, progressPercent: 0, hasGenesis: true });
    expect(stalled.lastError).toMatch(/^validator-\d: VAL_HASH_001 at docket 1$/);
    expect((await register.state(registerId)).height).toBe(1);
    const strict = await health('?strict=1');
    expect([strict.status, strict.body.status]).toEqual([503, 'stalled']);
    expect((await health()).status).toBe(200);
    register.validators.readDockets = given;
    register.ledger.recovery.wake();
    await waitFor(async () => (await health()).body.checkedAt !== null);
    expect((await entryOf(registerId))?.status).toBe('stalled');
    clock.advance(30_000);
    register.ledger.recovery.wake();
    expect(await until(registerId, 'synced')).toMatchObject({ currentDocket: 3, lastError: null });
    expect((await health()).body.status).toBe('synced');
  });

  it('continues with another source where one ends', async () => {
    const registerId = await register.createRegister('Two halves');
    const missing = await register.proposeMore(registerId, 4);
    let asked = 0;
    register.validators.readDockets = async function* (_at, { from }) {
      asked += 1;
      yield* asked === 1 ? missing.slice(0, 2) : missing.slice(from - 1);
    };
    hold(registerId, missing);
    await waitFor(() => asked === 2);
    expect(await until(registerId, 'synced')).toMatchObject({ currentDocket: 4, docketsProcessed: 4 });
    register.validators.readDockets = given;
  });

  it('believes only known validators, and only for registers whose set contains them', async () => {
    const registerId = await register.createRegister('Not theirs');
    const stranger = register.validators.members.find(({ validatorId }) => validatorId === 'validator-4');
    if (stranger === undefined) throw new Error('no stranger');
    await register.introduce(stranger);
    const { heights } = register.validators.history;
    heights.clear();
    heights.set('ff'.repeat(16), 9);
    register.validators.heights = async ({ validatorId }) =>
      validatorId === stranger.validatorId ? new Map([[registerId, 9]]) : heights;
    register.ledger.recovery.wake();
    await until(registerId, 'synced');
    const before = (await health()).body;
    register.ledger.recovery.wake();
    clock.advance(1_000);
    await waitFor(async () => (await health()).body.checkedAt !== before.checkedAt);
    expect((await health()).body).toMatchObject({ status: 'synced', registerCount: before.registerCount });
  });

  it('notifies followers of a register', async () => {
    const { rows } = await register.database.pool.query(
      "select key, kind, data from outbox where kind = 'RegisterSyncStateChanged' order by sequence",
    );
    const events = rows.map(({ kind, data }) => parseStoredEvent(kind, data)?.data);
    const states = (registerId: string) =>
      events.flatMap((one) =>
        one && 'syncState' in one && one.registerId === registerId ? one.syncState : [],
      );
    const [lied] = rows.filter(({ data }) => data.syncState === 'Error');
    expect(states(lied?.key)).toEqual(['Syncing', 'Error', 'Syncing', 'CaughtUp']);
  });
});

describe('without exposure', () => {
  it('needs a token', async () => {
    const closed = await startTestRegister('recovery_closed', { publicSyncHealth: false });
    expect((await closed.call('GET', '/health/sync')).status).toBe(401);
    expect((await closed.call('GET', '/health/sync', { token: 'nobody' })).status).toBe(401);
    expect((await closed.call('GET', '/health/sync', { token: 'user' })).status).toBe(200);
    await closed.stop();
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import type { Follower } from '#kit/events/follow.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { type TestRuntime, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { migrations } from '../../database/migrations/list.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { type EventSource, startWalletConsumer } from './consumer.ts';
import { factOf, openWalletLog, type WalletLog } from './wallets.fixture.ts';

const PERSON = 'person-1';
const unreachable = 'the wallet events cannot be consumed now; tokens carry the last known wallets';
/** Longer than the deadline of any test. */
const NEVER_MS = 3_600_000;

describe('the consumer of wallet events', () => {
  let db: Database<TenantDatabase>;
  let runtime: TestRuntime;
  let log: WalletLog;
  let consumers: Follower[];
  let listeners: Set<() => void>;
  let failures: number;

  beforeEach(async () => {
    runtime = testRuntime('tenant');
    db = await openDatabase<TenantDatabase>({
      url: await testDatabase('tenant_following'),
      schema: 'tenant',
      log: runtime.log,
      telemetry: runtime.telemetry,
      migrations,
    });
    log = await openWalletLog();
    consumers = [];
    listeners = new Set();
    failures = 0;
  });
  afterEach(async () => {
    await Promise.all(consumers.map((consumer) => consumer.stop()));
    await log.close();
    await db.close();
  });

  const follow = (pollMs: number, source: EventSource = log) => {
    const consumer = startWalletConsumer({
      db,
      source,
      auditUse: () => Promise.resolve(),
      auditChange: () => Promise.resolve(),
      onOrganizationWallet: () => Promise.resolve(),
      bus: {
        subscribe: (subject, listener) => {
          expect(subject).toBe(SUBJECTS.walletEvents);
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      },
      log: runtime.log,
      onApplied: () => undefined,
      onFailed: () => {
        failures += 1;
      },
      pollMs,
    });
    consumers.push(consumer);
    return consumer;
  };
  const notify = () => {
    for (const listener of listeners) listener();
  };
  const addresses = async () => {
    const rows = await db.read.selectFrom('user_wallets').select('address').orderBy('created_at').execute();
    return rows.map((row) => row.address);
  };
  const logged = (level: string) => runtime.lines.filter((line) => line['level'] === level);

  it('reads existing events at its start without a notification', async () => {
    const fact = factOf(PERSON, 1);
    await log.tell('WalletCreated', fact);
    follow(5);
    await waitFor(async () => (await addresses()).includes(fact.address));
  });

  it('a notification starts a read before the next poll', async () => {
    follow(NEVER_MS);
    await waitFor(() => log.reads > 0);
    const fact = factOf(PERSON, 1);
    await log.tell('WalletCreated', fact);
    await waitFor(async () => {
      notify();
      return (await addresses()).includes(fact.address);
    });
  });

  it('without notifications it polls', async () => {
    follow(5);
    await waitFor(() => log.reads > 2);
    const fact = factOf(PERSON, 1);
    await log.tell('WalletCreated', fact);
    await waitFor(async () => (await addresses()).includes(fact.address));
  });

  it('two replicas consume one log and apply each event once', async () => {
    follow(1);
    follow(1);
    const facts = Array.from({ length: 20 }, (_, index) => factOf(PERSON, index + 1));
    for (const fact of facts) {
      await log.tell('WalletCreated', fact);
      notify();
    }
    await waitFor(async () => (await addresses()).length === facts.length);
    expect(await addresses()).toEqual(facts.map((fact) => fact.address));
    expect(failures).toBe(0);
  });

  it('continues after an outage and logs it once', async () => {
    let down = true;
    const away = new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'nobody is there');
    follow(5, { read: (after, signal) => (down ? Promise.reject(away) : log.read(after, signal)) });
    await waitFor(() => failures > 2);
    expect(logged('info').map((line) => line['msg'])).toContain(unreachable);
    const fact = factOf(PERSON, 1);
    await log.tell('WalletCreated', fact);
    down = false;
    await waitFor(async () => (await addresses()).includes(fact.address));
    await waitFor(() =>
      logged('info').some((line) => line['msg'] === 'the wallet events are consumed again'),
    );
    expect(logged('info').filter((line) => line['msg'] === unreachable)).toHaveLength(1);
    expect(logged('error')).toEqual([]);
  });

  it('logs an event that it cannot read as an error, once', async () => {
    await log.append('WalletCreated', { walletId: 'none' });
    follow(5);
    await waitFor(() => failures > 2);
    expect(logged('error').map((line) => line['msg'])).toEqual([
      'the wallet events cannot be consumed; the consumer retries at the same event',
    ]);
  });

  it('stops during a read that does not end, and does not read again', async () => {
    let reads = 0;
    const hanging: EventSource = {
      read: (_after, signal) => {
        reads += 1;
        const { promise, reject } = Promise.withResolvers<never>();
        signal.addEventListener('abort', () => reject(new Error('cancelled')), { once: true });
        return promise;
      },
    };
    const consumer = follow(1, hanging);
    await waitFor(() => reads > 0);
    await consumer.stop();
    expect(listeners.size).toBe(0);
    expect(reads).toBe(1);
    expect(failures).toBe(0);
  });

  it('stops while it waits for the next poll', async () => {
    const consumer = follow(NEVER_MS);
    await waitFor(() => log.reads > 0);
    await consumer.stop();
    expect(listeners.size).toBe(0);
  });
});

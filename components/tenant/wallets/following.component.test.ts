import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { type TestRuntime, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { migrations } from '../database/migrations/list.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { type Consumer, type EventSource, startWalletConsumer } from './consumer.ts';
import { factOf, openWalletLog, type WalletLog } from './wallets.fixture.ts';

const PERSON = 'person-1';
/** Longer than any test waits. */
const NEVER_MS = 3_600_000;

describe('following the wallet service', () => {
  let db: Database<TenantDatabase>;
  let runtime: TestRuntime;
  let log: WalletLog;
  let consumers: Consumer[];
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
  const ring = () => {
    for (const listener of listeners) listener();
  };
  const addresses = async () => {
    const rows = await db.read.selectFrom('user_wallets').select('address').orderBy('created_at').execute();
    return rows.map((row) => row.address);
  };
  const logged = (level: string) => runtime.lines.filter((line) => line['level'] === level);

  it('reads what was there before it came, without a ring', async () => {
    const fact = factOf(PERSON, 1);
    await log.tell('WalletCreated', fact);
    follow(5);
    await waitFor(async () => (await addresses()).includes(fact.address));
  });

  it('the doorbell saves the wait for the next look', async () => {
    follow(NEVER_MS);
    await waitFor(() => log.reads > 0);
    const fact = factOf(PERSON, 1);
    await log.tell('WalletCreated', fact);
    await waitFor(async () => {
      ring();
      return (await addresses()).includes(fact.address);
    });
  });

  it('a bus that is silent costs time and nothing else', async () => {
    follow(5);
    await waitFor(() => log.reads > 2);
    const fact = factOf(PERSON, 1);
    await log.tell('WalletCreated', fact);
    await waitFor(async () => (await addresses()).includes(fact.address));
  });

  it('two replicas follow one log and apply each event once', async () => {
    follow(1);
    follow(1);
    const facts = Array.from({ length: 20 }, (_, index) => factOf(PERSON, index + 1));
    for (const fact of facts) {
      await log.tell('WalletCreated', fact);
      ring();
    }
    await waitFor(async () => (await addresses()).length === facts.length);
    expect(await addresses()).toEqual(facts.map((fact) => fact.address));
    expect(failures).toBe(0);
  });

  it('goes on after an outage, having said so once', async () => {
    let down = true;
    const away = new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'nobody is there');
    follow(5, { read: (after, signal) => (down ? Promise.reject(away) : log.read(after, signal)) });
    await waitFor(() => failures > 2);
    expect(logged('info').map((line) => line['msg'])).toContain('events of wallets cannot be read now');
    const fact = factOf(PERSON, 1);
    await log.tell('WalletCreated', fact);
    down = false;
    await waitFor(async () => (await addresses()).includes(fact.address));
    await waitFor(() => logged('info').some((line) => line['msg'] === 'events of wallets are read again'));
    expect(
      logged('info').filter((line) => line['msg'] === 'events of wallets cannot be read now'),
    ).toHaveLength(1);
    expect(logged('error')).toEqual([]);
  });

  it('what it cannot read is an error in the log, once', async () => {
    await log.append('WalletCreated', { walletId: 'none' });
    follow(5);
    await waitFor(() => failures > 2);
    expect(logged('error').map((line) => line['msg'])).toEqual(['events of wallets cannot be read']);
  });

  it('stops during a read that does not end, and asks no more', async () => {
    let asked = 0;
    const hanging: EventSource = {
      read: (_after, signal) => {
        asked += 1;
        const { promise, reject } = Promise.withResolvers<never>();
        signal.addEventListener('abort', () => reject(new Error('cancelled')), { once: true });
        return promise;
      },
    };
    const consumer = follow(1, hanging);
    await waitFor(() => asked > 0);
    await consumer.stop();
    expect(listeners.size).toBe(0);
    expect(asked).toBe(1);
    expect(failures).toBe(0);
  });

  it('stops while it waits', async () => {
    const consumer = follow(NEVER_MS);
    await waitFor(() => log.reads > 0);
    await consumer.stop();
    expect(listeners.size).toBe(0);
  });
});

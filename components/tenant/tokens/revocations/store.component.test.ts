import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { migrations } from '../../database/migrations/list.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { logStart } from './revocation.ts';
import { appendRevocation, listRevocations } from './store.ts';

const nowMs = Date.UTC(2026, 0, 1);

describe('the log of revocations', () => {
  let db: Database<TenantDatabase>;
  beforeAll(async () => {
    const { log, telemetry } = testRuntime('tenant');
    const url = await testDatabase('tenant_revocation_log');
    db = await openDatabase<TenantDatabase>({ url, schema: 'tenant', log, telemetry, migrations });
  });
  afterAll(() => db.close());

  const revoke = (key: string) =>
    db.transact((tx) =>
      appendRevocation(tx, { kind: 'token', key, notBeforeMs: 0, expiresAtMs: nowMs + 60_000 }),
    );
  const list = (after = logStart, limit = 100) => listRevocations(db.read, after, { limit, nowMs });
  const keysOf = ({ revocations }: Awaited<ReturnType<typeof list>>) => revocations.map(({ key }) => key);

  /** Waits until all revocations are settled; other test files have open transactions in the same cluster. */
  const allSettled = () =>
    waitFor(async () => keysOf(await list((await list()).next)).length === 0, {
      what: 'settled revocations',
    });

  /** Keeps a writing transaction open, like a migration or an import in another schema. */
  async function holdTransaction() {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const done = db.transact(async (tx) => {
      await sql`SELECT pg_current_xact_id()`.execute(tx);
      begun.resolve();
      await held.promise;
      await appendRevocation(tx, { kind: 'token', key: 'late', notBeforeMs: 0, expiresAtMs: nowMs + 60_000 });
    });
    await begun.promise;
    return async () => {
      held.resolve();
      await done;
    };
  }

  it('returns a revocation at once while an older transaction is open, and not again afterwards', async () => {
    await revoke('before');
    await allSettled();
    const release = await holdTransaction();
    await revoke('during');
    const first = await list();
    expect(keysOf(first)).toEqual(expect.arrayContaining(['before', 'during']));
    const second = await list(first.next);
    expect(keysOf(second)).toEqual(['during']);
    expect(second.next).toEqual(first.next);
    await release();
    await allSettled();
    const third = await list(second.next);
    expect(keysOf(third).toSorted()).toEqual(['during', 'late']);
    expect(keysOf(await list(third.next))).toEqual([]);
  });

  it('pages over settled revocations and is complete after the last page', async () => {
    for (const key of ['p1', 'p2', 'p3']) await revoke(key);
    await allSettled();
    const given: string[] = [];
    let next = logStart;
    for (let complete = false; !complete; ) {
      const page = await list(next, 2);
      given.push(...keysOf(page));
      ({ next, complete } = page);
    }
    expect(given).toEqual(expect.arrayContaining(['p1', 'p2', 'p3']));
    expect(new Set(given).size).toBe(given.length);
  });
});

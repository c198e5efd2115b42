import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { liftCap, pruneCaps, refundCap, securityCap, securityCapMigration } from './security-cap.ts';

type Empty = Record<never, never>;

describe('securityCap', () => {
  const replicas: Database<Empty>[] = [];
  beforeAll(async () => {
    const url = await testDatabase('security-cap');
    for (const service of ['service-a', 'service-b']) {
      const { log, telemetry } = testRuntime(service);
      const migrations = [securityCapMigration('0001-security-caps')];
      replicas.push(await openDatabase<Empty>({ url, schema: 'caps', log, telemetry, migrations }));
    }
  });
  afterAll(() => Promise.all(replicas.map((replica) => replica.close())));

  const replica = (index: number): Database<Empty> => {
    const found = replicas[index % replicas.length];
    if (found === undefined) {
      throw new Error('no replica');
    }
    return found;
  };

  async function attempts(count: number, name: string, key = 'somebody@example.org') {
    const cap = { name, key, limit: 5, windowSeconds: 60 };
    const acts = Array.from({ length: count }, (_, index) => securityCap(replica(index), cap));
    const results = await Promise.allSettled(acts);
    return results.filter((result) => result.status === 'rejected').map((result) => result.reason as unknown);
  }

  it('counts the acts of two replicas together, even when they are concurrent', async () => {
    const refusals = await attempts(20, 'together');
    expect(refusals).toHaveLength(15);
    for (const refusal of refusals) {
      expect(refusal).toBeInstanceOf(AppError);
      expect(refusal).toMatchObject({ kind: 'rate_limited', code: 'RATE_LIMITED' });
      const { retryAfterSeconds = 0 } = refusal as AppError;
      expect(retryAfterSeconds).toBeGreaterThan(50);
      expect(retryAfterSeconds).toBeLessThanOrEqual(60);
    }
  });

  it('counts every key and every name separately', async () => {
    expect(await attempts(5, 'separate', 'a')).toEqual([]);
    expect(await attempts(5, 'separate', 'b')).toEqual([]);
    expect(await attempts(5, 'separate-too', 'a')).toEqual([]);
  });

  it('keeps the count when the caller rolls its own transaction back', async () => {
    const cap = { name: 'rolled-back', key: 'k', limit: 1, windowSeconds: 60 };
    const failing = replica(0).transact(async () => {
      await securityCap(replica(0), cap);
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    await expect(securityCap(replica(1), cap)).rejects.toMatchObject({ kind: 'rate_limited' });
  });

  it('opens again when its window is over, and refusals do not prolong it', async () => {
    const refused = await attempts(7, 'over');
    expect(refused).toHaveLength(2);
    await replica(0).transact((tx) =>
      sql`update security_caps set expires_at = now() - interval '1 second' where name = 'over'`.execute(tx),
    );
    expect(await attempts(5, 'over')).toEqual([]);
    expect(await attempts(1, 'over')).toHaveLength(1);
  });

  it('can be lifted, and ended windows are deleted', async () => {
    await attempts(6, 'lifted');
    await liftCap(replica(1), { name: 'lifted', key: 'somebody@example.org' });
    expect(await attempts(5, 'lifted')).toEqual([]);
    await replica(0).transact((tx) =>
      sql`update security_caps set expires_at = now() - interval '1 second' where name = 'lifted'`.execute(
        tx,
      ),
    );
    expect(await pruneCaps(replica(0))).toBe(1);
  });

  it('refunds one act and no more', async () => {
    const cap = { name: 'refunded', key: 'somebody@example.org' };
    await refundCap(replica(0), cap);
    await attempts(5, 'refunded');
    await refundCap(replica(1), cap);
    expect(await attempts(3, 'refunded')).toHaveLength(2);
  });

  it('stores no key', async () => {
    await attempts(1, 'hashed', 'secret-address');
    const { rows } = await sql<{ text: string }>`select cap::text as text from security_caps cap`.execute(
      replica(0).read,
    );
    expect(JSON.stringify(rows)).not.toContain('secret-address');
  });
});

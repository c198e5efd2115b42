import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  openFixture,
  openReplica,
  person,
  type Replica,
  type ReplicaOptions,
} from '../../testing/fixture.ts';
import { createHttpClient } from '../../testing/http-client.ts';
import { fileKek, type KekProvider } from '../kek.ts';
import { createRewrapping } from './rewrap.ts';

const signal = new AbortController().signal;

describe('changing the key-encryption key', () => {
  const alice = person();
  const next = randomBytes(32);
  let first: Replica & ReplicaOptions;
  let ids: string[];

  beforeAll(async () => {
    first = await openFixture('wallet_rewrap');
    const client = createHttpClient(first);
    client.callers.set('alice', alice);
    ids = [];
    for (let i = 0; i < 5; i += 1)
      ids.push((await client.made('alice', i % 2 === 0 ? 'ED25519' : 'NISTP256')).id);
    await client.close();
  });

  afterAll(() => first.close());

  const rewrappingOf = (kek: KekProvider, change: Partial<Replica> = {}) => {
    const { db, runtime } = { ...first, ...change };
    return createRewrapping({ db, kek, log: runtime.log, telemetry: runtime.telemetry, batch: 2 });
  };
  const wrappedUnder = async () => {
    const { rows } = await first.db.pool.query('SELECT kek_id FROM wallet_secrets');
    return [...new Set(rows.map(({ kek_id }) => kek_id))];
  };
  /** Signs with every wallet in a process that has these keys. */
  const signsAll = async (kek: readonly [Buffer, ...Buffer[]]) => {
    const replica = await openReplica({ url: first.url, kek: kek[0], formerKeks: kek.slice(1) });
    const client = createHttpClient(replica);
    client.callers.set('alice', alice);
    try {
      const signed = [];
      for (const id of ids) {
        const { body: wallet } = await client.call('alice', `GET /api/wallets/${id}`);
        const body = { data: 'AAAA', algorithm: wallet.keyType };
        signed.push((await client.call('alice', `POST /api/wallets/${id}/sign`, { body })).status);
      }
      return signed.every((status) => status === 200);
    } finally {
      await client.close();
      await replica.close();
    }
  };

  test('an interrupted run leaves every wallet readable under a listed key; the next run finishes', async () => {
    const both = fileKek(next, first.kek);
    let moved = 0;
    const interrupted: KekProvider = {
      ...both,
      wrap: (dataKey, aad) => {
        moved += 1;
        return moved > 2 ? Promise.reject(new Error('killed')) : both.wrap(dataKey, aad);
      },
    };
    await expect(rewrappingOf(interrupted).run(signal)).rejects.toThrow('killed');
    expect((await wrappedUnder()).sort()).toEqual([...both.ids].sort());
    expect(await signsAll([next, first.kek])).toBe(true);
    expect(await signsAll([first.kek, next])).toBe(true);
    expect(await signsAll([next])).toBe(false);
    const rewrapping = rewrappingOf(both);
    await Promise.all([rewrapping.run(signal), rewrappingOf(both).run(signal)]);
    rewrapping.assertDone();
    expect(await wrappedUnder()).toEqual([both.currentId]);
    expect(await signsAll([next])).toBe(true);
    expect(await signsAll([first.kek])).toBe(false);
    const former = both.ids[1];
    const lines = first.runtime.lines.filter(({ msg }) => String(msg).startsWith('no wallet needs'));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.every(({ kekId }) => kekId === former)).toBe(true);
    const metrics = await first.runtime.telemetry.registry.metrics();
    expect(metrics).toContain(`data_keys{kek_id="${both.currentId}"} 5`);
    expect(metrics).toContain(`data_keys{kek_id="${former}"} 0`);
  });

  test('a data key under a key that is not listed is a problem and changes nothing', async () => {
    const rewrapping = rewrappingOf(fileKek(randomBytes(32)));
    await rewrapping.run(signal);
    expect(() => rewrapping.assertDone()).toThrow('not listed');
    expect(await wrappedUnder()).toEqual([fileKek(next).currentId]);
  });

  test('a damaged row is reported and does not stop the others', async () => {
    const [damaged] = ids;
    const { rows } = await first.db.pool.query(
      'UPDATE wallet_secrets SET wrapped_key = set_byte(wrapped_key, 20, get_byte(wrapped_key, 20) # 1) WHERE wallet_id = $1 RETURNING kek_id',
      [damaged],
    );
    const third = randomBytes(32);
    const rewrapping = rewrappingOf(fileKek(third, next));
    await rewrapping.run(signal);
    expect(() => rewrapping.assertDone()).toThrow('1 data keys');
    expect((await wrappedUnder()).sort()).toEqual([fileKek(third).currentId, rows[0].kek_id].sort());
  });

  test('a key that is listed twice or has another length is refused', () => {
    expect(() => fileKek(next, next)).toThrow('twice');
    expect(() => fileKek(next, randomBytes(16))).toThrow('32 bytes');
  });
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApi } from '../harness/api.ts';
import { fetchIndexedIds } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { type GivenParts, startGivenParts } from './given-parts.ts';

const progress = z.object({
  sealed: z.number(),
  projected: z.number(),
  rows: z.number(),
  counted: z.number(),
});

describe('index rows of dockets that are stored while the index rows cannot be written', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  let database: pg.Client;

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-index-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, env: parts.env });
    database = new pg.Client({ connectionString: parts.env.DATABASE_URL });
    await database.connect();
  });

  afterAll(async () => {
    await database.end();
    await system.stop();
    await parts.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** What the database holds of a register. */
  async function stored(registerId: string) {
    const { rows } = await database.query(
      `select h.height::int as sealed, coalesce(p.height, 0)::int as projected,
          (select count(*)::int from register.transaction_rows t where t.register_no = r.register_no) as rows,
          (select coalesce(sum(transaction_count), 0)::int from register.sender_counters c
            where c.register_no = r.register_no) as counted
        from register.registers r join register.register_heads h using (register_no)
        left join register.register_projections p using (register_no) where r.register_id = $1`,
      [registerId],
    );
    return progress.parse(rows[0]);
  }

  test('kill -9 between commit and index rows: the next process writes each row once', async () => {
    const first = createApi(system.state.gatewayUrl);
    const { access_token: token } = await signIn(first, system.state);
    const owner = await createWallet(first, token, 'ED25519');
    const { walletAddress: sender } = owner;
    const registerId = await createRegister(first, token, 'Index register', owner);
    await waitOnline(first, token, registerId);
    await database.query('begin');
    await database.query(
      `select 1 from register.register_projections p join register.registers r using (register_no)
        where r.register_id = $1 for update of p`,
      [registerId],
    );
    const ids: string[] = [];
    for (let n = 0; n < 20; n += 1) {
      const txId = await submitThroughRegister(first, token, { registerId, sender, payload: { n } });
      await waitConfirmed(first, token, registerId, txId);
      ids.push(txId);
    }
    await system.kill();
    await database.query('rollback');
    const left = await stored(registerId);
    expect(left.projected).toBeLessThan(left.sealed);
    expect([left.projected, left.rows, left.counted]).toEqual([1, 1, 1]);

    system = await startSystem({ dataDir, env: parts.env });
    const again = createApi(system.state.gatewayUrl);
    const { access_token: newToken } = await signIn(again, system.state);
    const found = await fetchIndexedIds(again, newToken, registerId);
    expect(found.slice(0, -1)).toEqual(ids.toReversed());
    const after = await stored(registerId);
    expect(after).toEqual({
      ...after,
      projected: left.sealed,
      rows: ids.length + 1,
      counted: ids.length + 1,
    });
  }, 120_000);
});

import pg from 'pg';
import type { Pool } from 'undici';
import { type Accounts, createAccounts } from '../../harness/account.ts';
import { startOf } from '../../harness/running-process.ts';
import { inParallel } from '../../harness/wait.ts';
import { cpuSeconds } from '../process-cpu.ts';
import type { Stage } from '../stage.ts';

export const password = 'marble orchard seldom rains';

/** The tenant service of a stage, asked at its own listener. */
export interface Tenant {
  readonly pid: number;
  readonly accounts: Accounts;
  /** Posts JSON; throws unless the status is the expected one. */
  post(path: string, json: object, status?: number): Promise<unknown>;
  /** The transactions with a write that its database has for one act; background work makes the figure a little too high. */
  commitsOf(count: number, act: () => Promise<unknown>): Promise<number>;
  close(): Promise<void>;
}

export function openTenant(stage: Stage): Tenant {
  const pid = stage.pidOf('tenant');
  const pool: Pool = stage.pool(stage.addressOf('tenant', 'HTTPS'), 64);
  return {
    pid,
    accounts: createAccounts(stage.api, `${stage.dir}/state`),
    post: async (path, json, status = 200) => {
      const headers = { 'content-type': 'application/json' };
      const answer = await pool.request({ path, method: 'POST', headers, body: JSON.stringify(json) });
      const text = await answer.body.text();
      if (answer.statusCode !== status) throw new Error(`${path} answered ${answer.statusCode}: ${text}`);
      return text === '' ? undefined : JSON.parse(text);
    },
    commitsOf: async (count, act) => {
      const client = new pg.Client({ connectionString: startOf(pid).env['DATABASE_URL'] });
      await client.connect();
      const at = async () => {
        const { rows } = await client.query<{ at: string }>(
          'select pg_snapshot_xmax(pg_current_snapshot()) as at',
        );
        return Number(rows[0]?.at);
      };
      const before = await at();
      for (let n = 0; n < count; n++) await act();
      const made = (await at()) - before;
      await client.end();
      return Math.floor(made / count);
    },
    close: () => pool.close(),
  };
}

/** How many of these a process does in a second of its CPU. */
export async function perCpuSecond<T>(
  pid: number,
  all: readonly T[],
  inFlight: number,
  act: (one: T) => Promise<unknown>,
): Promise<number> {
  const before = cpuSeconds(pid);
  await inParallel(all, inFlight, act);
  return all.length / (cpuSeconds(pid) - before);
}

import type { Pool } from 'undici';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { inParallel, until } from '../harness/wait.ts';
import type { Installation } from './stage.ts';

export const validatePath = '/api/v1/transactions/validate';

/** Transactions signed before the clock starts: 0.5 KB of payload, fifty senders. */
export function presign(registerId: string, count: number): readonly string[] {
  const keys = Array.from({ length: 50 }, createOutsideKey);
  return Array.from({ length: count }, (_, n) => {
    const key = keys[n % keys.length] ?? createOutsideKey();
    // Members in canonical order: the raw program hashes the text as received.
    const payload = { at: Date.now(), n, note: 'x'.repeat(500) };
    return JSON.stringify(signSubmission(key, { registerId, payload }));
  });
}

/** One POST; throws unless it is answered with 200. */
export async function post(pool: Pool, path: string, token: string, body: string): Promise<string> {
  const answer = await pool.request({
    path,
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body,
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) {
    throw new Error(`${path} answered ${answer.statusCode}: ${text}`);
  }
  return text;
}

/** Number of stored transactions of a register, by the register service's own listener. */
export async function storedIn(
  { registerListener, token }: Installation,
  registerId: string,
): Promise<number> {
  const path = `/api/registers/${registerId}/transactions?pageSize=1`;
  const answer = await registerListener.request({
    path,
    method: 'GET',
    headers: { authorization: `Bearer ${token}` },
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}: ${text}`);
  return JSON.parse(text).totalCount;
}

/** Number of transactions in the store of the raw programs. */
export async function storedRaw(store: Pool): Promise<number> {
  return Number(await (await store.request({ path: '/', method: 'GET' })).body.text());
}

/** How a program is loaded, and how its stored transactions are counted. */
export interface Loaded {
  readonly connections: number;
  /** `place` is the index of the transaction in the round, for spreading over listeners. */
  readonly send: (body: string, place: number) => Promise<unknown>;
  readonly stored: () => Promise<number>;
}

/** Transactions per second, from the first byte sent until that many more are stored. */
export async function storedPerSecond(
  count: number,
  stored: Loaded['stored'],
  send: () => Promise<unknown>,
): Promise<number> {
  const goal = (await stored()) + count;
  const startedAt = performance.now();
  await send();
  await until('all stored', 120_000, async () => ((await stored()) >= goal ? true : undefined));
  return count / ((performance.now() - startedAt) / 1000);
}

/**
 * Sends all and waits until all are stored; returns transactions per second. `count` is the number of transactions in
 * the bodies where a body has more than one.
 */
export function sendAll(loaded: Loaded, bodies: readonly string[], count = bodies.length): Promise<number> {
  return storedPerSecond(count, loaded.stored, () =>
    inParallel(bodies, loaded.connections, (body, place) => loaded.send(body, place)),
  );
}

/** Spreads requests over pools in turn. */
export function spread(pools: readonly Pool[], place: number): Pool {
  const pool = pools[place % pools.length];
  if (pool === undefined) throw new RangeError('there is no listener to send to');
  return pool;
}

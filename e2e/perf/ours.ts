import type { Pool } from 'undici';
import { inParallel } from '../harness/wait.ts';
import type { Contestant } from './contest.ts';
import { post, sendAll, spread, storedIn, storedPerSecond, validatePath } from './load.ts';
import { treeCpuSeconds } from './process-cpu.ts';
import type { Installation } from './stage.ts';

const perBatch = 1_000;
const batchPath = '/api/v1/transactions/batch';

/** Sends batches, several at a time. */
export type Send = (batches: readonly (readonly string[])[]) => Promise<unknown>;

/** Transactions in batches of 1,000. */
export function batchesOf(bodies: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(bodies.length / perBatch);
  return Array.from({ length: count }, (_, n) => bodies.slice(n * perBatch, (n + 1) * perBatch));
}

/** The product with one transaction a request, spread over the listeners of `pools`. */
export function oneByOne(
  installation: Installation,
  pools: readonly Pool[],
  connections: number,
): Contestant {
  const { token, registerId, launcherPid } = installation;
  const loaded = {
    connections,
    send: (body: string, place: number) => post(spread(pools, place), validatePath, token, body),
    stored: () => storedIn(installation, registerId),
  };
  return { perSecond: (bodies) => sendAll(loaded, bodies), cpuSeconds: () => treeCpuSeconds(launcherPid) };
}

/** One request to the batch route; throws unless all of it is accepted. */
async function sendBatch(installation: Installation, pool: Pool, batch: readonly string[]): Promise<void> {
  const answer = await pool.request({
    path: batchPath,
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', authorization: `Bearer ${installation.token}` },
    body: batch.join('\n'),
  });
  const text = await answer.body.text();
  const accepted = answer.statusCode === 200 ? JSON.parse(text).accepted : 0;
  if (accepted !== batch.length) throw new Error(`${batchPath} answered ${text.slice(0, 500)}`);
}

/** Transactions per second of the product in batches, from the first byte sent until the last one is stored. */
export function packedPerSecond(
  installation: Installation,
  bodies: readonly string[],
  send: Send,
): Promise<number> {
  const batches = batchesOf(bodies);
  return storedPerSecond(
    bodies.length,
    () => storedIn(installation, installation.registerId),
    () => send(batches),
  );
}

/** The product with batches, sent by its batch route or by its gRPC stream. */
export function packedBy(installation: Installation, send: Send): Contestant {
  return {
    perSecond: (bodies) => packedPerSecond(installation, bodies, send),
    cpuSeconds: () => treeCpuSeconds(installation.launcherPid),
  };
}

/** The batch route, with the batches spread over the listeners of `pools`. */
export function batchesByHttp(installation: Installation, pools: readonly Pool[], inFlight: number): Send {
  return (batches) =>
    inParallel(batches, inFlight, (batch, place) => sendBatch(installation, spread(pools, place), batch));
}

import { join } from 'node:path';
import { Pool } from 'undici';
import { z } from 'zod';
import { until } from '../../harness/wait.ts';
import { cpuSeconds } from '../process-cpu.ts';
import { readSubmission } from '../raw/transaction.ts';
import { freePorts } from './ports.ts';
import { run, type Served, serve } from './program.ts';

/** Nodes of CometBFT on loopback with the application of `go/cometbft` in each. */
export interface CometBft {
  /** Sends a transaction to one of the nodes; it is verified when this resolves. */
  send(request: string, place: number): Promise<void>;
  /** Number of committed transactions. */
  stored(): Promise<number>;
  cpuSeconds(): number;
  stop(): Promise<void>;
}

export interface CometBftOptions {
  readonly program: string;
  readonly dir: string;
  readonly nodes: number;
  readonly tuned: boolean;
  readonly connections: number;
}

const rpcAnswer = z.object({
  error: z.object({ message: z.string(), data: z.string().optional() }).optional(),
  result: z
    .object({
      code: z.number().optional(),
      check_tx: z.object({ code: z.number() }).optional(),
      tx_result: z.object({ code: z.number() }).optional(),
    })
    .optional(),
});
const synced = z.object({ result: z.object({ sync_info: z.object({ catching_up: z.boolean() }) }) });
const queried = z.object({ result: z.object({ response: z.object({ value: z.string().nullable() }) }) });

type Method = 'broadcast_tx_sync' | 'broadcast_tx_commit';

function callOf(method: Method, submission: string): object {
  const { id, check, body } = readSubmission(submission);
  const tx = Buffer.concat([check.subarray(0, 96), id, body]).toString('base64');
  return { jsonrpc: '2.0', id: 1, method, params: { tx } };
}

/** The request for the transaction of a submission: the same signature over the same payload. */
export function requestOf(method: Method, submission: string): string {
  return JSON.stringify(callOf(method, submission));
}

/** One request with many transactions. */
export function batchOf(submissions: readonly string[]): string {
  return JSON.stringify(submissions.map((each) => callOf('broadcast_tx_sync', each)));
}

/** 'taken' when all were accepted; 'full' when the mempool has no room. */
export function judge(text: string): 'taken' | 'full' {
  const answers = [JSON.parse(text)].flat().map((each) => rpcAnswer.parse(each));
  for (const { error, result } of answers) {
    if (error?.data?.includes('mempool is full') === true) return 'full';
    const codes = [result?.code ?? 0, result?.check_tx?.code ?? 0, result?.tx_result?.code ?? 0];
    if (error !== undefined || result === undefined || codes.some((code) => code !== 0))
      throw new Error(`CometBFT answered ${text.slice(0, 500)}`);
  }
  return 'taken';
}

async function ask(pool: Pool, body: string): Promise<string> {
  const answer = await pool.request({
    path: '/',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  return answer.body.text();
}

async function committed(pool: Pool): Promise<number> {
  const request = { jsonrpc: '2.0', id: 1, method: 'abci_query', params: { path: '', data: '' } };
  const { value } = queried.parse(JSON.parse(await ask(pool, JSON.stringify(request)))).result.response;
  return Number(Buffer.from(value ?? '', 'base64').toString());
}

/** A node accepts no transactions before it has synchronised with the others. */
async function isReady(pool: Pool): Promise<boolean> {
  const text = await ask(pool, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} }));
  const status = synced.safeParse(JSON.parse(text));
  return status.success && !status.data.result.sync_info.catching_up;
}

async function startNodes(options: CometBftOptions, homes: readonly string[]): Promise<[Served[], string[]]> {
  const ids: string[] = JSON.parse(await run(options.program, ['init', ...homes]));
  const rpc = await freePorts(homes.length);
  const p2p = await freePorts(homes.length);
  const addresses = ids.map((id, index) => `${id}@127.0.0.1:${p2p[index]}`);
  const nodes = await Promise.all(
    homes.map((home, index) => {
      const settings = {
        home,
        rpc: `127.0.0.1:${rpc[index]}`,
        p2p: `127.0.0.1:${p2p[index]}`,
        peers: addresses.filter((_, other) => other !== index).join(','),
        tuned: options.tuned,
      };
      return serve(options.program, ['run', JSON.stringify(settings)]);
    }),
  );
  return [nodes, rpc.map((port) => `http://127.0.0.1:${port}`)];
}

/** Starts the nodes and waits until a transaction is committed on all of them. */
export async function startCometBft(options: CometBftOptions, first: string): Promise<CometBft> {
  const homes = Array.from({ length: options.nodes }, (_, index) => join(options.dir, `node-${index}`));
  const [nodes, urls] = await startNodes(options, homes);
  const each = Math.ceil(options.connections / options.nodes);
  const pools = urls.map((url) => new Pool(url, { connections: each }));
  const watch = new Pool(urls[0] ?? '', { connections: 1 });
  const send = async (request: string, place: number): Promise<void> => {
    const pool = pools[place % pools.length];
    if (pool === undefined) throw new RangeError('there is no node to send to');
    while (judge(await ask(pool, request)) === 'full') await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...pools, watch].map((pool) => pool.destroy()));
    await Promise.all(nodes.map((node) => node.stop()));
  };
  const all = (what: string, holds: (pool: Pool) => Promise<boolean>) =>
    until(what, 60_000, async () =>
      (await Promise.all(pools.map(holds))).every(Boolean) ? true : undefined,
    );
  try {
    await all('the nodes', isReady);
    await send(requestOf('broadcast_tx_sync', first), 0);
    await all('the first block', async (pool) => (await committed(pool)) > 0);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    send,
    stored: () => committed(watch),
    cpuSeconds: () => nodes.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
    stop,
  };
}

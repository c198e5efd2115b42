import { generateKeyPairSync } from 'node:crypto';
import type { Pool } from 'undici';
import { startSystem } from '../harness/system.ts';
import { inParallel } from '../harness/wait.ts';
import { cpuSeconds, memoryMiB, processTree } from './process-cpu.ts';
import { startRaw } from './raw/child.ts';
import type { Row } from './report.ts';
import type { Installation, Stage } from './stage.ts';

const rounds = 5;
export const inFlight = 32;
export const mints = 1_500;
export const requests = 4_000;

/** Requests per CPU second of one process, over `count` requests. */
export async function perCpuSecond(
  pid: number,
  count: number,
  send: () => Promise<unknown>,
): Promise<number> {
  const before = cpuSeconds(pid);
  await inParallel(Array.from({ length: count }), inFlight, send);
  return count / (cpuSeconds(pid) - before);
}

export interface MeasuredRequest {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends the request once; throws unless it is answered with 200. */
export function asking(pool: Pool, request: MeasuredRequest): () => Promise<void> {
  return async () => {
    const answer = await pool.request({ headers: {}, ...request });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) {
      throw new Error(`${request.path} answered ${answer.statusCode}: ${text}`);
    }
  };
}

/** One service token over mutual TLS. */
export function tokenRequest({ system }: Installation): MeasuredRequest {
  return {
    path: new URL(system.state.mtlsTokenUrl).pathname,
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'grant_type=client_credentials&client_id=service-operator',
  };
}

/** One small request through the gateway. */
export const gatewayRequest: MeasuredRequest = { path: '/.well-known/jwks.json', method: 'GET' };

/** Service tokens over mutual TLS with kept connections. */
export async function minting(stage: Stage): Promise<Row> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signingKey = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const raw = await startRaw(new URL('./raw/mint.ts', import.meta.url), { ...stage.svid, signingKey });
  const listener = new URL(stage.system.state.mtlsTokenUrl);
  const pools = { ours: stage.pool(listener.origin, inFlight), raw: stage.pool(raw.said, inFlight) };
  const form = tokenRequest(stage);
  const figures = { ours: [] as number[], raw: [] as number[] };
  for (let n = 0; n <= rounds; n++) {
    const ours = await perCpuSecond(stage.pidOf('tenant'), mints, asking(pools.ours, form));
    const bare = await perCpuSecond(raw.pid, mints, asking(pools.raw, { ...form, path: '/' }));
    if (n > 0) {
      figures.ours.push(ours);
      figures.raw.push(bare);
    }
  }
  await Promise.all(Object.values(pools).map((pool) => pool.close()));
  await raw.stop();
  return {
    measure: 'tokens over mTLS, keep-alive, per CPU second',
    ...figures,
    unit: '/s',
    bound: { kind: 'share', atLeast: 0.5 },
  };
}

/** CPU of the gateway for one small request, against a bare proxy to the same listener. */
export async function gatewayCpu(stage: Stage): Promise<Row> {
  const raw = await startRaw(new URL('./raw/proxy.ts', import.meta.url), {
    origin: stage.addressOf('tenant', 'HTTPS'),
    ...stage.svid,
  });
  const pools = {
    ours: stage.pool(stage.system.state.gatewayUrl, inFlight),
    raw: stage.pool(raw.said, inFlight),
  };
  const figures = { ours: [] as number[], raw: [] as number[] };
  for (let n = 0; n <= rounds; n++) {
    const ours =
      1e6 / (await perCpuSecond(stage.pidOf('gateway'), requests, asking(pools.ours, gatewayRequest)));
    const bare = 1e6 / (await perCpuSecond(raw.pid, requests, asking(pools.raw, gatewayRequest)));
    if (n > 0) {
      figures.ours.push(ours);
      figures.raw.push(bare);
    }
  }
  await Promise.all(Object.values(pools).map((pool) => pool.close()));
  await raw.stop();
  return {
    measure: 'gateway CPU per request',
    ...figures,
    unit: 'us',
    bound: { kind: 'multiple', atMost: 1.7 },
  };
}

/** Start and memory of local mode in one process, on existing data. */
export async function startAndMemory(dataDir: string): Promise<readonly Row[]> {
  const seconds: number[] = [];
  const memory: number[] = [];
  for (let n = 0; n <= 3; n++) {
    const system = await startSystem({ dataDir });
    const pid = system.state.processes.find((one) => one.name === 'local')?.pid ?? 0;
    if (n > 0) {
      seconds.push(system.startedInMs / 1000);
      memory.push(processTree(pid).reduce((sum, each) => sum + memoryMiB(each), 0));
    }
    await system.stop();
  }
  return [
    {
      measure: 'npm start on existing data to ready',
      ours: seconds,
      raw: [],
      unit: 's',
      bound: { kind: 'absolute', atMost: 4 },
    },
    {
      measure: 'memory of the whole, one process',
      ours: memory,
      raw: [],
      unit: 'MiB',
      bound: { kind: 'absolute', atMost: 400 },
    },
  ];
}

import { setTimeout as rest } from 'node:timers/promises';
import { createRegister } from '../harness/journey.ts';
import { inParallel, until } from '../harness/wait.ts';
import { readMetrics, sumOf } from './metrics.ts';
import { treeCpuSeconds } from './process-cpu.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

const registers = 1_000;
const inFlight = 16;
const restSeconds = 20;
/** Time for the effects of the last docket: heartbeats name 256 registers with a new height, each five times. */
const settleMs = 30_000;

interface AtRest {
  /** CPU seconds a second of all processes, in percent of one core. */
  readonly percent: number;
  /** gRPC calls, HTTP requests and SQL statements a second. */
  readonly calls: number;
}

const counted = /_(?:rpc_server_duration|http_request|sql_query|request)_seconds_count$/;
const components = ['tenant', 'wallet', 'register', 'blueprint', 'credential', 'gateway'];

/**
 * CPU at rest of the whole installation with its one register, which all validators share, and with 1,000 more of them.
 * The heartbeats between validators, one a second for each pair, are in both.
 */
export async function idleRegisters(stage: Stage): Promise<readonly Row[]> {
  await rest(settleMs / 3);
  const before = await atRest(stage);
  const startedAt = performance.now();
  await inParallel(Array.from({ length: registers }), inFlight, (_, n) =>
    createRegister(stage.api, stage.token, `Idle register ${n}`, stage.owner),
  );
  await allSealed(stage);
  const took = (performance.now() - startedAt) / 1000;
  await rest(settleMs);
  const after = await atRest(stage);
  return [
    {
      measure: `${registers} idle registers: CPU at rest, one register, all`,
      ours: [before.percent],
      raw: [],
      unit: '% of a core',
      bound: { kind: 'printed' },
    },
    {
      measure: `${registers} idle registers: CPU at rest, ${registers + 1} registers`,
      ours: [after.percent],
      raw: [],
      unit: '% of a core',
      bound: { kind: 'printed' },
    },
    {
      measure: `${registers} idle registers: what they add`,
      ours: [after.percent - before.percent],
      raw: [],
      unit: '% of a core',
      bound: { kind: 'absolute', atMost: 2 },
    },
    {
      measure: `${registers} idle registers: calls and statements added`,
      ours: [after.calls - before.calls],
      raw: [],
      unit: '/s',
      bound: { kind: 'absolute', atMost: 1 },
    },
    {
      measure: `${registers} registers created and sealed`,
      ours: [took],
      raw: [],
      unit: 's',
      bound: { kind: 'printed' },
    },
  ];
}

async function atRest(stage: Stage): Promise<AtRest> {
  const calls = await countCalls(stage);
  const startedAt = performance.now();
  const cpu = treeCpuSeconds(stage.launcherPid);
  await rest(restSeconds * 1000);
  const seconds = (performance.now() - startedAt) / 1000;
  const used = treeCpuSeconds(stage.launcherPid) - cpu;
  return { percent: (used / seconds) * 100, calls: ((await countCalls(stage)) - calls) / seconds };
}

async function countCalls(stage: Stage): Promise<number> {
  const urls = [
    ...stage.system.state.validators.map(({ ops }) => `http://${ops}`),
    ...components.map((name) => stage.addressOf(name, 'OPS')),
  ];
  const texts = await Promise.all(urls.map(readMetrics));
  return texts.reduce((sum, text) => sum + sumOf(text, counted), 0);
}

/** Waits until every validator has decided a docket of each register. */
async function allSealed(stage: Stage): Promise<void> {
  await until('every register is sealed', 120_000, async () => {
    const answer = await stage.api.send('GET', '/api/admin/validation/status', { token: stage.token });
    if (answer.status !== 200) return undefined;
    const { registers: sets } = answer.body as { registers: { lastDocketNumber: number }[] };
    const sealed = sets.filter(({ lastDocketNumber }) => lastDocketNumber >= 0);
    return sealed.length > registers ? true : undefined;
  });
}

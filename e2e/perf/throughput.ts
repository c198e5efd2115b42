import type { Pool } from 'undici';
import { type Loaded, post, presign, sendAll, spread, storedIn, validatePath } from './load.ts';
import { treeCpuSeconds } from './process-cpu.ts';
import { type RawInstallation, startRawInstallation } from './raw/installation.ts';
import type { Row } from './report.ts';
import { rawSettings, type Stage } from './stage.ts';

const perRound = 3_000;
const connections = 64;
const rounds = 3;

/** A program under load, and what all of its processes have used of the machine. */
interface Contestant extends Loaded {
  cpuSeconds(): number;
}

function rawContestant(stage: Stage, raw: RawInstallation, pools: readonly Pool[], store: Pool): Contestant {
  const pids = [...raw.pids, stage.rawDatabasePid];
  return {
    connections,
    send: (body, place) => post(spread(pools, place), '/', '', body),
    stored: async () => Number(await (await store.request({ path: '/', method: 'GET' })).body.text()),
    cpuSeconds: () => pids.reduce((sum, pid) => sum + treeCpuSeconds(pid), 0),
  };
}

function ourContestant(stage: Stage, pools: readonly Pool[]): Contestant {
  const { token, registerId } = stage;
  return {
    connections,
    send: (body, place) => post(spread(pools, place), validatePath, token, body),
    stored: () => storedIn(stage, registerId),
    cpuSeconds: () => treeCpuSeconds(stage.launcherPid),
  };
}

interface Figures {
  readonly perSecond: number[];
  readonly cpuMicros: number[];
}

/** Every contestant after the other in each round; the first round warms up. */
async function interleave(
  registerId: string,
  contestants: readonly Contestant[],
): Promise<readonly Figures[]> {
  const figures = contestants.map((): Figures => ({ perSecond: [], cpuMicros: [] }));
  for (let n = 0; n <= rounds; n++) {
    for (const [place, contestant] of contestants.entries()) {
      const bodies = presign(registerId, perRound);
      const before = contestant.cpuSeconds();
      const perSecond = await sendAll(contestant, bodies);
      const cpuMicros = ((contestant.cpuSeconds() - before) / perRound) * 1e6;
      if (n === 0) continue;
      figures[place]?.perSecond.push(perSecond);
      figures[place]?.cpuMicros.push(cpuMicros);
    }
  }
  return figures;
}

async function contest(stage: Stage, name: string): Promise<readonly Figures[]> {
  const urls = stage.validatorUrls();
  const raw = await startRawInstallation(rawSettings(stage, name, urls.length));
  const each = connections / urls.length;
  const ours = urls.map((url) => stage.pool(url, each));
  const bare = raw.validatorUrls.map((url) => stage.pool(url, each));
  const store = stage.pool(raw.storeUrl, 1);
  const gateway = stage.pool(stage.system.state.gatewayUrl, connections);
  const through = urls.length === 1 ? [ourContestant(stage, [gateway])] : [];
  try {
    const rivals = [ourContestant(stage, ours), rawContestant(stage, raw, bare, store), ...through];
    return await interleave(stage.registerId, rivals);
  } finally {
    await Promise.all([...ours, ...bare, store, gateway].map((pool) => pool.close()));
    await raw.stop();
  }
}

const none: Figures = { perSecond: [], cpuMicros: [] };

function cpuRow(measure: string, ours: Figures, raw: Figures): Row {
  return { measure, ours: ours.cpuMicros, raw: raw.cpuMicros, unit: 'us', bound: { kind: 'printed' } };
}

/** One validator, pre-signed, one a request, 64 connections; at its listener and through the gateway. */
export async function throughput(stage: Stage): Promise<readonly Row[]> {
  const [direct = none, raw = none, through = none] = await contest(stage, 'one');
  return [
    {
      measure: 'confirmed tx/s, validator listener, 64 connections',
      ours: direct.perSecond,
      raw: raw.perSecond,
      unit: '/s',
      bound: { kind: 'share', atLeast: 0.55 },
    },
    {
      measure: 'the same through the gateway',
      ours: through.perSecond,
      raw: raw.perSecond,
      unit: '/s',
      bound: { kind: 'printed' },
    },
    cpuRow('CPU of all processes per confirmed transaction', direct, raw),
  ];
}

/** Four validators that each verify every transaction; the connections are spread over their listeners. */
export async function throughputOfFour(stage: Stage): Promise<readonly Row[]> {
  const [ours = none, raw = none] = await contest(stage, 'four');
  return [
    {
      measure: 'four validators: confirmed tx/s, 64 connections',
      ours: ours.perSecond,
      raw: raw.perSecond,
      unit: '/s',
      bound: { kind: 'share', atLeast: 0.4 },
    },
    cpuRow('four validators: CPU of all per confirmed transaction', ours, raw),
  ];
}

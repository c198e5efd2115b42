import type { Pool } from 'undici';
import { type Contestant, cpuRow, type Figures, interleave, none, rawCpuSeconds } from './contest.ts';
import { post, sendAll, spread, storedRaw } from './load.ts';
import { oneByOne } from './ours.ts';
import { type RawInstallation, startRawInstallation } from './raw/installation.ts';
import type { Row } from './report.ts';
import { rawSettings, type Stage } from './stage.ts';

const perRound = 3_000;
const connections = 64;
const rounds = 3;
/** Ten seconds of such load each, so that a service that has run for a while is measured. */
const warmUp = 5;

function rawContestant(stage: Stage, raw: RawInstallation, pools: readonly Pool[], store: Pool): Contestant {
  const loaded = {
    connections,
    send: (body: string, place: number) => post(spread(pools, place), '/', '', body),
    stored: () => storedRaw(store),
  };
  return { perSecond: (bodies) => sendAll(loaded, bodies), cpuSeconds: () => rawCpuSeconds(stage, raw) };
}

async function contest(stage: Stage, name: string): Promise<readonly Figures[]> {
  const urls = stage.validatorUrls();
  const raw = await startRawInstallation(rawSettings(stage, name, urls.length));
  const each = connections / urls.length;
  const ours = urls.map((url) => stage.pool(url, each));
  const bare = raw.validatorUrls.map((url) => stage.pool(url, each));
  const store = stage.pool(raw.storeUrl, 1);
  const gateway = stage.pool(stage.system.state.gatewayUrl, connections);
  const through = urls.length === 1 ? [oneByOne(stage, [gateway], connections)] : [];
  try {
    const rivals = [oneByOne(stage, ours, connections), rawContestant(stage, raw, bare, store), ...through];
    return await interleave(rivals, { perRound, rounds, warmUp, registerOf: () => stage.registerId });
  } finally {
    await Promise.all([...ours, ...bare, store, gateway].map((pool) => pool.close()));
    await raw.stop();
  }
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
      bound: { kind: 'share', atLeast: 0.6 },
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

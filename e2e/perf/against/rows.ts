import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'undici';
import { startSystem } from '../../harness/system.ts';
import { type Contestant, type Figures, interleave, none } from '../contest.ts';
import { confirmationMs } from '../latency.ts';
import { presign } from '../load.ts';
import { batchesByHttp, oneByOne, packedBy } from '../ours.ts';
import type { Row } from '../report.ts';
import {
  asking,
  gatewayRequest,
  inFlight,
  mints,
  perCpuSecond,
  requests,
  tokenRequest,
} from '../services.ts';
import type { Installation } from '../stage.ts';

/** An installation of this source tree, and one of the other commit. */
export type Rivals = readonly [here: Installation, there: Installation];

/** A measurement of both source trees by turns. */
export interface Comparison {
  readonly name: string;
  readonly what: string;
  /** 0: it starts what it needs itself, from the root of the other source tree. */
  readonly validators: 0 | 1 | 4;
  measure(rivals: Rivals | undefined, source: string): Promise<readonly Row[]>;
}

/** Ten seconds of load each before the rounds that count, so that services which have run for a while are measured. */
const course = { rounds: 7, warmUp: 5 };
const connections = 64;
const batchesInFlight = 4;
/** Single submissions to each; the first quarter is not counted. */
const samples = 400;
const starts = 5;

const printed = { kind: 'printed' } as const;

/** Rows of a load; `make` gives the contestant of an installation with its connections. */
async function underLoad(
  rivals: Rivals,
  { what, perRound }: { readonly what: string; readonly perRound: number },
  make: (installation: Installation, validators: readonly Pool[]) => Contestant,
): Promise<readonly Row[]> {
  const open = rivals.map((installation) => {
    const urls = installation.validatorUrls();
    return urls.map((url) => installation.pool(url, connections / urls.length));
  });
  try {
    const contestants = rivals.map((installation, n) => make(installation, open[n] ?? []));
    // A transaction names its register, so each installation signs its own.
    const registerOf = (place: number): string => rivals[place]?.registerId ?? '';
    const [here = none, there = none] = await interleave(contestants, { ...course, perRound, registerOf });
    return rowsOf(what, here, there);
  } finally {
    await Promise.all(open.flat().map((pool) => pool.close()));
  }
}

function rowsOf(what: string, here: Figures, there: Figures): readonly Row[] {
  return [
    {
      measure: `${what}: confirmed tx/s`,
      ours: here.perSecond,
      raw: there.perSecond,
      unit: '/s',
      bound: printed,
    },
    {
      measure: `${what}: CPU of all per transaction`,
      ours: here.cpuMicros,
      raw: there.cpuMicros,
      unit: 'us',
      bound: printed,
    },
  ];
}

const one = (what: string) => (rivals: Rivals) =>
  underLoad(rivals, { what, perRound: 3_000 }, (installation, pools) =>
    oneByOne(installation, pools, connections),
  );

const packed = (rivals: Rivals) =>
  underLoad(rivals, { what: 'batches of 1,000', perRound: 8_000 }, (installation, pools) =>
    packedBy(installation, batchesByHttp(installation, pools, batchesInFlight)),
  );

const latency = (what: string) => async (rivals: Rivals) => {
  const ours: number[] = [];
  const raw: number[] = [];
  const sides = rivals.map((installation, n) => ({
    installation,
    register: installation.pool(installation.addressOf('register', 'HTTPS'), 1),
    submissions: presign(installation.registerId, samples),
    figures: n === 0 ? ours : raw,
  }));
  for (let n = 0; n < samples; n++) {
    for (const { installation, register, submissions, figures } of n % 2 === 0 ? sides : sides.toReversed())
      figures.push(await confirmationMs(installation, register, submissions[n] ?? ''));
  }
  await Promise.all(sides.map(({ register }) => register.close()));
  const counted = samples / 4;
  return [{ measure: what, ours: ours.slice(counted), raw: raw.slice(counted), unit: 'ms', bound: printed }];
};

/** `process` answers `send`; requests per CPU second of it, by turns. */
async function perProcessSecond(
  rivals: Rivals,
  { process, count }: { readonly process: string; readonly count: number },
  open: (installation: Installation) => { readonly pool: Pool; readonly send: () => Promise<void> },
): Promise<{ readonly ours: number[]; readonly raw: number[] }> {
  const sides = rivals.map((installation) => ({
    pid: installation.pidOf(process),
    figures: [] as number[],
    ...open(installation),
  }));
  for (let n = 0; n <= course.rounds; n++) {
    for (const { pid, send, figures } of n % 2 === 0 ? sides : sides.toReversed()) {
      const figure = await perCpuSecond(pid, count, send);
      if (n > 0) figures.push(figure);
    }
  }
  await Promise.all(sides.map(({ pool }) => pool.close()));
  const [ours = [], raw = []] = sides.map(({ figures }) => figures);
  return { ours, raw };
}

async function tokens(rivals: Rivals): Promise<readonly Row[]> {
  const figures = await perProcessSecond(rivals, { process: 'tenant', count: mints }, (installation) => {
    const pool = installation.pool(new URL(installation.system.state.mtlsTokenUrl).origin, inFlight);
    return { pool, send: asking(pool, tokenRequest(installation)) };
  });
  return [{ measure: 'tokens over mTLS, per CPU second', ...figures, unit: '/s', bound: printed }];
}

async function gateway(rivals: Rivals): Promise<readonly Row[]> {
  const figures = await perProcessSecond(rivals, { process: 'gateway', count: requests }, (installation) => {
    const pool = installation.pool(installation.system.state.gatewayUrl, inFlight);
    return { pool, send: asking(pool, gatewayRequest) };
  });
  return [
    { measure: 'requests through the gateway, per CPU second', ...figures, unit: '/s', bound: printed },
  ];
}

/** Seconds from the start of local mode in one process, on existing data, until it is ready; by turns. */
async function start(source: string): Promise<readonly Row[]> {
  const root = mkdtempSync(join(tmpdir(), 'chancery-bench-start-'));
  const ours: number[] = [];
  const raw: number[] = [];
  const sides = [
    { figures: ours, options: { dataDir: join(root, 'here') } },
    { figures: raw, options: { dataDir: join(root, 'there'), source } },
  ];
  try {
    for (let n = 0; n <= starts; n++) {
      for (const { figures, options } of n % 2 === 0 ? sides : sides.toReversed()) {
        const system = await startSystem(options);
        if (n > 0) figures.push(system.startedInMs / 1000);
        await system.stop();
      }
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return [{ measure: 'npm start on existing data to ready', ours, raw, unit: 's', bound: printed }];
}

function on(
  validators: 1 | 4,
  name: string,
  what: string,
  measure: (rivals: Rivals) => Promise<readonly Row[]>,
): Comparison {
  return {
    name,
    what,
    validators,
    measure: async (rivals) => {
      if (rivals === undefined) throw new Error('this comparison needs two running installations');
      return await measure(rivals);
    },
  };
}

/** All comparisons in their order. */
export const comparisons: readonly Comparison[] = [
  on(1, 'one', 'transactions per second, one a request, one validator', one('one a request')),
  on(1, 'packed', 'transactions per second in batches, one validator', packed),
  on(1, 'latency', 'submit to confirmed, one validator', latency('submit to confirmed, idle, p50')),
  on(1, 'tokens', 'tokens over mutual TLS', tokens),
  on(1, 'gateway', 'requests through the gateway', gateway),
  on(4, 'four', 'transactions per second, four validators', one('four validators')),
  on(
    4,
    'latency-four',
    'submit to confirmed, four validators',
    latency('four validators: submit to confirmed, idle, p50'),
  ),
  {
    name: 'start',
    what: 'start of local mode',
    validators: 0,
    measure: (_, source) => start(source),
  },
];

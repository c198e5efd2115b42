import { join } from 'node:path';
import { type Contestant, type Figures, interleave, none } from '../contest.ts';
import { timed } from '../latency.ts';
import { presign, sendAll } from '../load.ts';
import { batchesByHttp, batchesOf, oneByOne, packedBy } from '../ours.ts';
import { rawFromMemory } from '../packed.ts';
import { readSubmission } from '../raw/transaction.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import { batchOf, type CometBft, requestOf, startCometBft } from './cometbft.ts';
import { confirm, confirmAndProve, openProver } from './ours.ts';
import type { Programs } from './program.ts';
import { fedWithin, startTessera, type Tessera } from './tessera.ts';

const perRound = 8_000;
const rounds = 3;
const connections = 64;
const batchesInFlight = 4;
const samples = { tuned: 200, default: 10 } as const;
const proven = { tuned: 30, default: 3 } as const;
/** More concurrent requests than the product gets, with which Tessera is faster. */
const wide = 256;
/** Approximate size of each payload. */
const payloadBytes = 550;

export interface Match {
  readonly stage: Stage;
  readonly programs: Programs;
}

function theirs(node: CometBft, inBatch: boolean): Contestant {
  return {
    perSecond: (bodies) => {
      const requests = inBatch
        ? batchesOf(bodies).map(batchOf)
        : bodies.map((body) => requestOf('broadcast_tx_sync', body));
      const width = inBatch ? batchesInFlight : connections;
      return sendAll({ ...node, connections: width }, requests, bodies.length);
    },
    cpuSeconds: () => node.cpuSeconds(),
  };
}

function best(figures: readonly Figures[]): readonly number[] {
  return Array.from({ length: rounds }, (_, round) =>
    Math.max(...figures.map(({ perSecond }) => perSecond[round] ?? 0)),
  );
}

type Figured = Pick<Row, 'ours' | 'raw'>;

function rate(measure: string, figured: Figured, atLeast?: number): Row {
  return {
    measure,
    ...figured,
    unit: '/s',
    bound: atLeast === undefined ? { kind: 'printed' } : { kind: 'share', atLeast },
  };
}

function duration(measure: string, figured: Figured, atMost?: number): Row {
  return {
    measure,
    ...figured,
    unit: 'ms',
    bound: atMost === undefined ? { kind: 'printed' } : { kind: 'multiple', atMost },
  };
}

interface Nodes {
  readonly plain: CometBft;
  readonly tuned: CometBft;
}

/** Runs a measurement with both installations of CometBFT, with as many nodes as there are validators. */
async function withNodes<T>({ stage, programs }: Match, act: (nodes: Nodes) => Promise<T>): Promise<T> {
  const nodes = stage.validatorUrls().length;
  const [first = ''] = presign(stage.registerId, 1);
  const start = (tuned: boolean) => {
    const dir = join(stage.dir, `cometbft-${tuned ? 'tuned' : 'default'}`);
    return startCometBft({ program: programs.cometbft, dir, nodes, tuned, connections }, first);
  };
  const plain = await start(false);
  try {
    const tuned = await start(true);
    try {
      return await act({ plain, tuned });
    } finally {
      await tuned.stop();
    }
  } finally {
    await plain.stop();
  }
}

async function throughput({ stage }: Match, { plain, tuned }: Nodes): Promise<readonly Row[]> {
  const urls = stage.validatorUrls();
  const pools = urls.map((url) => stage.pool(url, connections / urls.length));
  const bare = await rawFromMemory(stage, urls.length);
  try {
    const figures = await interleave(
      [
        oneByOne(stage, pools, connections),
        theirs(tuned, false),
        packedBy(stage, batchesByHttp(stage, pools, batchesInFlight)),
        theirs(tuned, true),
        theirs(plain, false),
        bare,
      ],
      { registerOf: () => stage.registerId, perRound, rounds, warmUp: 1 },
    );
    const [single = none, itsSingle = none, packed = none, itsPacked = none, itsDefault = none] = figures;
    const ceiling = figures[5]?.perSecond ?? [];
    const name = `CometBFT, ${urls.length} ${urls.length === 1 ? 'node' : 'nodes'}`;
    const ours = best([single, packed]);
    const theirBest = best([itsSingle, itsPacked, itsDefault]);
    return [
      rate(`${name}, default: one a request`, { ours: single.perSecond, raw: itsDefault.perSecond }),
      rate(`${name}, tuned: one a request`, { ours: single.perSecond, raw: itsSingle.perSecond }),
      rate(`${name}, tuned: 1,000 a request`, { ours: packed.perSecond, raw: itsPacked.perSecond }),
      rate(`${name}: the best of each`, { ours, raw: theirBest }),
      rate(`${name}: the raw ledger, fed from memory`, { ours: ceiling, raw: theirBest }),
    ];
  } finally {
    await Promise.all([...pools.map((pool) => pool.close()), bare.stop()]);
  }
}

async function latency({ stage }: Match, { plain, tuned }: Nodes): Promise<readonly Row[]> {
  const register = stage.pool(stage.addressOf('register', 'HTTPS'), 1);
  const measured = async (node: CometBft, count: number): Promise<Figured> => {
    const figures = { ours: [] as number[], raw: [] as number[] };
    for (const submission of presign(stage.registerId, count)) {
      const request = requestOf('broadcast_tx_commit', submission);
      figures.ours.push(await timed(() => confirm(stage, register, submission)));
      figures.raw.push(await timed(() => node.send(request, 0)));
    }
    return figures;
  };
  try {
    await measured(tuned, samples.default);
    const count = stage.validatorUrls().length;
    const name = `CometBFT, ${count} ${count === 1 ? 'node' : 'nodes'}`;
    return [
      duration(`${name}, default: idle p50`, await measured(plain, samples.default)),
      duration(`${name}, tuned: idle p50`, await measured(tuned, samples.tuned)),
    ];
  } finally {
    await register.close();
  }
}

/** Confirmed transactions per second and idle latency beside CometBFT with as many nodes. */
export function besideCometBft(match: Match): Promise<readonly Row[]> {
  return withNodes(match, async (nodes) => [
    ...(await latency(match, nodes)),
    ...(await throughput(match, nodes)),
  ]);
}

function entries(log: Tessera, width: number): Contestant {
  return {
    perSecond: (bodies) => {
      const payloads = bodies.map((body) => readSubmission(body).body.toString());
      return sendAll({ ...log, connections: width }, payloads);
    },
    cpuSeconds: () => log.cpuSeconds(),
  };
}

async function proofs({ stage }: Match, logs: Logs): Promise<readonly Row[]> {
  const register = stage.pool(stage.addressOf('register', 'HTTPS'), 3);
  try {
    const prover = await openProver(stage, register);
    const measured = async (log: Tessera, count: number): Promise<Figured> => {
      const figures = { ours: [] as number[], raw: [] as number[] };
      for (const submission of presign(stage.registerId, count)) {
        const { length } = readSubmission(submission).body;
        figures.ours.push(await timed(() => confirmAndProve(prover, submission)));
        figures.raw.push(...(await log.prove(1, length)));
      }
      return figures;
    };
    await measured(logs.tuned, 1);
    return [
      duration('Tessera, default: until a proof verifies, p50', await measured(logs.plain, proven.default)),
      duration('Tessera, tuned: until a proof verifies, p50', await measured(logs.tuned, proven.tuned), 1),
    ];
  } finally {
    await register.close();
  }
}

interface Logs {
  readonly plain: Tessera;
  /** For as many connections as the product has. */
  readonly tuned: Tessera;
  /** For more of them. */
  readonly wide: Tessera;
}

async function startLogs({ stage, programs }: Match): Promise<Logs> {
  const start = (name: string, count: number, batch?: number): Promise<Tessera> =>
    startTessera({
      program: programs.tessera,
      dir: join(stage.dir, `tessera-${name}`),
      connections: count,
      ...(batch !== undefined && { batch }),
    });
  // Half of the requests in flight: the next batch is gathered while one is integrated.
  return {
    plain: await start('default', wide),
    tuned: await start('tuned', connections, connections / 2),
    wide: await start('wide', wide, wide / 2),
  };
}

async function integrated({ stage, programs }: Match, logs: Logs): Promise<readonly Row[]> {
  const pools = stage.validatorUrls().map((url) => stage.pool(url, connections));
  try {
    const [single = none, itsSingle = none, packed = none, itsWide = none, itsDefault = none] =
      await interleave(
        [
          oneByOne(stage, pools, connections),
          entries(logs.tuned, connections),
          packedBy(stage, batchesByHttp(stage, pools, batchesInFlight)),
          entries(logs.wide, wide),
          entries(logs.plain, wide),
        ],
        { registerOf: () => stage.registerId, perRound, rounds, warmUp: 1 },
      );
    const fed = await fedWithin(programs.tessera, join(stage.dir, 'tessera-fed'), perRound * 5, payloadBytes);
    const [ours, oursPacked] = [single.perSecond, packed.perSecond];
    return [
      rate(`Tessera, default, ${wide} at a time`, { ours, raw: itsDefault.perSecond }),
      rate(`Tessera, tuned, ${connections} at a time`, { ours, raw: itsSingle.perSecond }, 0.4),
      rate(`Tessera, tuned, ${wide} at a time; ours in batches`, {
        ours: oursPacked,
        raw: itsWide.perSecond,
      }),
      rate('Tessera fed within its process; ours in batches', {
        ours: oursPacked,
        raw: oursPacked.map(() => fed),
      }),
    ];
  } finally {
    await Promise.all(pools.map((pool) => pool.close()));
  }
}

/** Integrated entries per second and the time until a client has a proof, beside Tessera on POSIX files. */
export async function besideTessera(match: Match): Promise<readonly Row[]> {
  const logs = await startLogs(match);
  try {
    return [...(await proofs(match, logs)), ...(await integrated(match, logs))];
  } finally {
    await Promise.all(Object.values(logs).map((log) => log.stop()));
  }
}

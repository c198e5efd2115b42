import { inParallel } from '../../harness/wait.ts';
import { presign } from '../load.ts';
import { oneByOne } from '../ours.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from './lengths.ts';
import { applying, fourSteps, openPermits, type PermitStep } from './permits.ts';
import { lanes, openRaw, Product, type Side } from './sides.ts';

/** What is done with each instance, and what it may cost. */
interface Kind {
  readonly name: string;
  readonly what: string;
  readonly devMode: boolean;
  readonly steps: readonly PermitStep[];
  readonly instancesOf: (lengths: Lengths) => number;
  /** Least share of the raw program's rate. */
  readonly atLeast: number;
  /** Greatest multiple of a plain transaction's CPU. */
  readonly atMost: number;
}

const development: Kind = {
  name: 'workflow',
  what: 'actions',
  devMode: true,
  steps: fourSteps,
  instancesOf: ({ instances }) => instances,
  atLeast: 0.4,
  atMost: 4,
};

const encrypted: Kind = {
  name: 'workflow_encrypted',
  what: 'encrypted actions',
  devMode: false,
  steps: [applying],
  instancesOf: ({ starts }) => starts,
  atLeast: 0.45,
  atMost: 8,
};

interface Load {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

/** Takes the steps of new instances, 32 instances side by side. */
async function loadOnce(side: Side, steps: readonly PermitStep[], instances: number): Promise<Load> {
  const ids = await side.start(instances);
  const count = instances * steps.length;
  const [cpu, startedAt] = [side.cpuSeconds(), performance.now()];
  await inParallel(ids, lanes, async (id) => {
    for (const step of steps) await side.take(id, step);
  });
  const seconds = (performance.now() - startedAt) / 1000;
  return { perSecond: count / seconds, cpuMicros: ((side.cpuSeconds() - cpu) / count) * 1e6 };
}

/** Plain transactions of the same run, as many connections as there are instances side by side. */
async function loadPlain(stage: Stage, transactions: number): Promise<Load> {
  const pools = stage.validatorUrls().map((url) => stage.pool(url, lanes));
  const plain = oneByOne(stage, pools, lanes);
  const bodies = presign(stage.registerId, transactions);
  const cpu = plain.cpuSeconds();
  const perSecond = await plain.perSecond(bodies);
  const cpuMicros = ((plain.cpuSeconds() - cpu) / transactions) * 1e6;
  await Promise.all(pools.map((pool) => pool.close()));
  return { perSecond, cpuMicros };
}

interface Loads {
  readonly ours: Load[];
  readonly raw: Load[];
  readonly plain: Load[];
}

/** All three once in each round, beginning with another one in each. */
async function contest(stage: Stage, kind: Kind, lengths: Lengths): Promise<Loads> {
  const { devMode, steps, instancesOf, name } = kind;
  const permits = await openPermits(stage, { devMode });
  const ours = await Product.open(stage, permits);
  const raw = await openRaw(stage, { name, isEncrypted: !devMode });
  const instances = instancesOf(lengths);
  const turns = [
    ['ours', () => loadOnce(ours, steps, instances)],
    ['raw', () => loadOnce(raw, steps, instances)],
    ['plain', () => loadPlain(stage, lengths.transactions)],
  ] as const;
  const loads: Loads = { ours: [], raw: [], plain: [] };
  try {
    for (let n = 0; n < lengths.warmUp + lengths.rounds; n++) {
      const first = n % turns.length;
      for (const [side, run] of [...turns.slice(first), ...turns.slice(0, first)]) {
        const load = await run();
        if (n >= lengths.warmUp) loads[side].push(load);
      }
    }
    return loads;
  } finally {
    await Promise.all([ours.close(), raw.close()]);
  }
}

async function measure(stage: Stage, kind: Kind, lengths: Lengths): Promise<readonly Row[]> {
  const { what, atLeast, atMost } = kind;
  const { ours, raw, plain } = await contest(stage, kind, lengths);
  const cpu = (loads: readonly Load[]) => loads.map(({ cpuMicros }) => cpuMicros);
  const rate = (loads: readonly Load[]) => loads.map(({ perSecond }) => perSecond);
  return [
    {
      measure: `${what} until folded, ${lanes} instances side by side`,
      ours: rate(ours),
      raw: rate(raw),
      unit: '/s',
      bound: { kind: 'share', atLeast },
    },
    {
      measure: `${what}: CPU of all, against a plain transaction`,
      ours: cpu(ours),
      raw: cpu(plain),
      unit: 'us',
      bound: { kind: 'multiple', atMost },
    },
    {
      measure: `${what}: CPU of all, against the raw programs`,
      ours: cpu(ours),
      raw: cpu(raw),
      unit: 'us',
      bound: { kind: 'printed' },
    },
  ];
}

/** Actions of whole workflows on a register of development. */
export function actions(stage: Stage, lengths: Lengths): Promise<readonly Row[]> {
  return measure(stage, development, lengths);
}

/** First actions on an encrypted register: two groups, three recipients. */
export function encryptedActions(stage: Stage, lengths: Lengths): Promise<readonly Row[]> {
  return measure(stage, encrypted, lengths);
}

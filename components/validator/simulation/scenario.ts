import { createRandom, type Random } from './random.ts';

/** What may go wrong in a run; every kind is drawn for itself. */
export interface Faults {
  /** Processes are killed and start again. */
  readonly crashes: boolean;
  /** Machines lose their power: what was written and not forced is gone or torn. */
  readonly powerLosses: boolean;
  readonly partitions: boolean;
  readonly lossyLinks: boolean;
  /** An adversary chooses who hears which kind of message of which round. */
  readonly chosenLoss: boolean;
  /** Register service and signing component are away at times. */
  readonly awayServices: boolean;
  readonly wrongClocks: boolean;
  /** Validators join and leave, and the policy changes, by control transactions. */
  readonly setChanges: boolean;
  /** An old copy of a volume is put back. */
  readonly oldVolume: boolean;
  /** The register service's database is restored from a backup. */
  readonly oldStore: boolean;
  /** An identity is started a second time with a copy of its volume. */
  readonly secondStart: boolean;
}

export const MISDEEDS = [
  'proposes twice',
  'votes twice',
  'votes for everything',
  'votes nil',
  'withholds records',
  'lies about commits',
  'replays and relabels',
  'is late',
] as const;
export type Misdeed = (typeof MISDEEDS)[number];

/** Everything that a seed decides before a run begins. */
export interface Scenario {
  readonly seed: number;
  /** Validators that the register begins with. */
  readonly size: number;
  /** Validators that may join it. */
  readonly reserve: number;
  readonly policy: unknown;
  readonly transactions: number;
  readonly faultsUntilMs: number;
  readonly faults: Faults;
  /** What the members that keep to no rule do, by their place; fewer than a third. */
  readonly byzantine: ReadonlyMap<number, readonly Misdeed[]>;
}

const sizes = [1, 2, 3, 4, 4, 4, 4, 4, 5, 7] as const;

export function drawScenario(seed: number): Scenario {
  const random = createRandom(seed).fork('scenario');
  const size = random.pick(sizes);
  const tolerated = Math.floor((size - 1) / 3);
  const byzantine = drawByzantine(random, size, random.chance(0.6) ? random.whole(0, tolerated) : 0);
  const several = size > 1;
  const powerLosses = random.chance(0.5);
  // With members that come and go, nobody can say beforehand how many may fail.
  const setChanges = size > 2 && byzantine.size === 0 && random.chance(0.5);
  const isSpare = byzantine.size < tolerated && !setChanges;
  return {
    seed,
    size,
    reserve: setChanges ? random.whole(1, 2) : 0,
    policy: drawPolicy(random),
    transactions: random.whole(10, 30),
    faultsUntilMs: random.whole(20_000, 60_000),
    byzantine,
    faults: {
      crashes: random.chance(0.6),
      powerLosses,
      partitions: several && random.chance(0.4),
      lossyLinks: several && random.chance(0.4),
      chosenLoss: several && random.chance(0.5),
      awayServices: random.chance(0.4),
      wrongClocks: random.chance(0.3),
      setChanges,
      oldVolume: isSpare && random.chance(0.5),
      oldStore: !powerLosses && !isSpare && random.chance(0.4),
      secondStart: isSpare && random.chance(0.5),
    },
  };
}

export function describeScenario(scenario: Scenario): string {
  const { size, transactions, faults, byzantine } = scenario;
  const names = Object.entries(faults).flatMap(([name, happens]) => (happens ? name : []));
  const bad = [...byzantine].map(([place, misdeeds]) => `validator-${place} ${misdeeds.join(' and ')}`);
  return [`${size} validators, ${transactions} transactions`, ...names, ...bad].join('; ');
}

function drawByzantine(random: Random, size: number, count: number): Map<number, readonly Misdeed[]> {
  const places = Array.from({ length: size }, (_, place) => place);
  const chosen = random.shuffle(places).slice(0, count);
  return new Map(chosen.map((place) => [place, random.shuffle(MISDEEDS).slice(0, random.whole(1, 4))]));
}

function drawPolicy(random: Random): unknown {
  return {
    leaderElection: { heartbeatIntervalMs: 200, leaderTimeoutMs: random.pick([400, 1000, 3000]) },
    consensus: {
      docketBuildIntervalMs: random.pick([10, 200, 1000]),
      maxTransactionsPerDocket: random.pick([2, 10, 1000]),
      messageDelayMs: random.pick([2000, 15_000]),
    },
  };
}

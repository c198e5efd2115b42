import { faultTolerance } from '#core/ledger/consensus.ts';
import { createRandom, type Random } from '#kit/testing/random.ts';
import type { KeyFilterMode } from '../../intake/lookup/sealed-lookup.ts';

/** The faults of a run; each is drawn independently. */
export interface Faults {
  /** Processes are killed and started again. */
  readonly crashes: boolean;
  /** Machines lose power: unforced writes are lost or torn. */
  readonly powerLosses: boolean;
  readonly partitions: boolean;
  readonly lossyLinks: boolean;
  /** An adversary chooses which members receive which kind of message of which round. */
  readonly chosenLoss: boolean;
  /** Register service and signing component are unavailable at times. */
  readonly awayServices: boolean;
  readonly wrongClocks: boolean;
  /** Validators join and leave, and the policy changes, by control transactions. */
  readonly setChanges: boolean;
  /** An older copy of a volume is restored. */
  readonly oldVolume: boolean;
  /** A validator that left a set starts with an older copy of its volume, and may be added again. */
  readonly oldReturn: boolean;
  /** The register service's database is restored from a backup. */
  readonly oldStore: boolean;
  /** An identity is started a second time with a copy of its volume. */
  readonly secondStart: boolean;
  /** Validators are drained and undrained. */
  readonly drains: boolean;
  /** The signing component is rolled between two versions. */
  readonly earlierSigner: boolean;
}

export const byzantineBehaviours = [
  'proposes twice',
  'votes twice',
  'votes for everything',
  'votes nil',
  'withholds records',
  'lies about commits',
  'replays and relabels',
  'is late',
  'stamps wrongly',
] as const;
export type ByzantineBehaviour = (typeof byzantineBehaviours)[number];

/** One register of a world. */
export interface RegisterPlan {
  /** Indexes of the initial validators. */
  readonly members: readonly number[];
  readonly transactions: number;
}

/** Everything that a seed determines before a run begins. */
export interface Scenario {
  readonly seed: number;
  /** Initial validators of the first register. */
  readonly size: number;
  /** Validators that may join. */
  readonly reserve: number;
  readonly registers: readonly RegisterPlan[];
  readonly policy: unknown;
  readonly faultsUntilMs: number;
  readonly faults: Faults;
  /** Whether the keys of registers decide that a transaction is new, or are only compared. */
  readonly keyFilters: KeyFilterMode;
  /** The behaviours of Byzantine members, by index; never more than a register tolerates. */
  readonly byzantine: ReadonlyMap<number, readonly ByzantineBehaviour[]>;
}

const sizes = [1, 2, 3, 4, 4, 4, 4, 4, 5, 7] as const;

/** Expensive sizes occur at fixed seeds, so that any 200 consecutive seeds contain each of them. */
const largeSizes = [
  { size: 25, every: 200, at: 125 },
  { size: 13, every: 100, at: 13 },
  { size: 10, every: 67, at: 10 },
] as const;

export function drawScenario(seed: number): Scenario {
  const random = createRandom(seed).fork('scenario');
  const small = random.pick(sizes);
  const size = largeSizes.find(({ every, at }) => seed % every === at)?.size ?? small;
  const isLarge = size > 7;
  const setChanges = size > 2 && random.chance(0.5);
  const reserve = setChanges ? random.whole(1, 2) : 0;
  const byzantine = drawByzantine(random, size, reserve);
  const transactions = isLarge ? random.whole(3, 6) : random.whole(10, 25);
  const faultsUntilMs = isLarge ? random.whole(8_000, 15_000) : random.whole(20_000, 50_000);
  return {
    seed,
    size,
    reserve,
    registers: drawRegisters(random, { size, reserve, byzantine, transactions }),
    policy: drawPolicy(random),
    faultsUntilMs,
    byzantine,
    keyFilters: createRandom(seed).fork('key filters').pick(['on', 'on', 'on', 'shadow', 'off']),
    faults: drawFaults(random, size, setChanges, [...byzantine.values()].flat()),
  };
}

function drawFaults(
  random: Random,
  size: number,
  setChanges: boolean,
  behaviours: readonly ByzantineBehaviour[],
): Faults {
  const several = size > 1;
  const powerLosses = random.chance(0.5);
  const oldVolume = size > 3 && random.chance(0.25);
  const oldReturn = setChanges && random.chance(0.5);
  const secondStart = size > 3 && random.chance(0.25);
  // A log that lost or forgot entries cannot restore dockets to a restored store.
  const isConsistent = !powerLosses && !oldVolume && !oldReturn && !secondStart;
  return {
    crashes: random.chance(0.6),
    powerLosses,
    partitions: several && random.chance(behaviours.includes('withholds records') ? 0.7 : 0.4),
    lossyLinks: several && random.chance(0.4),
    chosenLoss: several && random.chance(0.5),
    awayServices: random.chance(0.4),
    wrongClocks: random.chance(behaviours.includes('stamps wrongly') ? 0.7 : 0.3),
    setChanges,
    oldVolume,
    oldReturn,
    oldStore: isConsistent && random.chance(0.4),
    secondStart,
    // New faults are drawn last, so that scenarios of older seeds are unchanged.
    drains: !random.chance(0.7),
    earlierSigner: random.chance(0.25),
  };
}

export function describeScenario(scenario: Scenario): string {
  const { size, reserve, registers, faults, byzantine, keyFilters } = scenario;
  const names = Object.entries(faults).flatMap(([name, happens]) => (happens ? name : []));
  const bad = [...byzantine].map(([place, behaviours]) => `validator-${place} ${behaviours.join(' and ')}`);
  const [first, ...others] = registers.map(({ members, transactions }, place) => {
    return place === 0
      ? `${size} validators and ${reserve} in reserve, ${transactions} transactions`
      : `r${place} of ${members.join(' ')} with ${transactions} transactions`;
  });
  return [first, ...others, `key filters ${keyFilters}`, ...names, ...bad].join('; ');
}

function drawByzantine(
  random: Random,
  size: number,
  reserve: number,
): Map<number, readonly ByzantineBehaviour[]> {
  const places = Array.from({ length: size }, (_, place) => place);
  const tolerated = faultTolerance(size);
  const inside = random.shuffle(places).slice(0, random.chance(0.6) ? random.whole(0, tolerated) : 0);
  const outside = reserve > 0 && random.chance(0.3) ? [size] : [];
  const draw = () => random.shuffle(byzantineBehaviours).slice(0, random.whole(1, 4));
  return new Map([...inside, ...outside].map((place) => [place, draw()]));
}

/** The first register has all members outside the reserve; further ones have overlapping sets. */
function drawRegisters(
  random: Random,
  world: Pick<Scenario, 'size' | 'reserve' | 'byzantine'> & { transactions: number },
): RegisterPlan[] {
  const { size, reserve, byzantine, transactions } = world;
  const all = Array.from({ length: size + reserve }, (_, place) => place);
  const more = size > 2 && size <= 7 && random.chance(0.25) ? random.whole(1, 2) : 0;
  const each = Math.ceil(transactions / (more + 1));
  const further = Array.from({ length: more }, () => {
    const drawn = random.shuffle(all).slice(0, random.whole(1, size));
    const honest = drawn.filter((place) => !byzantine.has(place));
    const liars = drawn.filter((place) => byzantine.has(place));
    const borne = liars.slice(0, Math.max(0, Math.floor((honest.length - 1) / 2)));
    const members = [...honest, ...borne].toSorted((a, b) => a - b);
    return {
      members: members.length > 0 ? members : [...all.filter((place) => !byzantine.has(place))].slice(0, 1),
      transactions: each,
    };
  });
  return [{ members: all.slice(0, size), transactions: each }, ...further];
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

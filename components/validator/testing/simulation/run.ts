import type { Counts } from './coverage.ts';
import { heal, planFaults } from './faults.ts';
import { describeScenario, drawScenario, type Scenario } from './scenario.ts';
import type { InvariantViolation } from './violations.ts';
import { type Weakness, World } from './world.ts';

export interface Outcome {
  readonly scenario: Scenario;
  readonly broken: InvariantViolation | undefined;
  readonly trace: readonly string[];
  /** Lower hex; equal for every run of the seed. */
  readonly digest: string;
  readonly events: number;
  readonly dockets: number;
  readonly sealed: number;
  readonly covered: Counts;
}

/** After healing, everything must settle within this time. */
const graceMs = 300_000;

/** Runs the world of one seed to its end or to the first broken invariant. */
export async function simulate(seed: number, weakness: Weakness = {}): Promise<Outcome> {
  const { keyFilters } = weakness;
  const drawn = drawScenario(seed);
  const scenario = keyFilters === undefined ? drawn : { ...drawn, keyFilters };
  const world = new World(scenario, weakness);
  const unhandled = (error: unknown) => world.onUnhandled(error);
  process.on('unhandledRejection', unhandled);
  try {
    await live(world, scenario);
  } finally {
    process.off('unhandledRejection', unhandled);
  }
  const ledgers = world.chains.map(({ ledger }) => ledger);
  return {
    scenario,
    broken: world.broken,
    trace: world.trace.lines,
    digest: world.trace.digest(),
    events: world.eventQueue.done,
    dockets: ledgers.reduce((sum, { dockets }) => sum + dockets.length, 0),
    sealed: ledgers.reduce((sum, { sealed }) => sum + sealed.size, 0),
    covered: world.coverage.counts,
  };
}

async function live(world: World, scenario: Scenario): Promise<void> {
  world.trace.add('WORLD', describeScenario(scenario));
  world.begin();
  planFaults(world, scenario);
  for (const [place, { transactions }] of scenario.registers.entries()) {
    world.chains[place]?.workload.plan(transactions, 1000, scenario.faultsUntilMs);
  }
  await world.run(scenario.faultsUntilMs);
  if (world.broken !== undefined) return;
  heal(world);
  const mayBeSettled = () => world.eventQueue.done % 16 === 0 && world.isSettled;
  await world.run(scenario.faultsUntilMs + graceMs, mayBeSettled);
  if (world.broken === undefined) world.judgeEnd();
}

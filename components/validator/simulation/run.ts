import { heal, planFaults } from './faults.ts';
import type { Broken } from './invariants.ts';
import { describeScenario, drawScenario, type Scenario } from './scenario.ts';
import { type Weakness, World } from './world.ts';

export interface Outcome {
  readonly scenario: Scenario;
  readonly broken: Broken | undefined;
  readonly trace: readonly string[];
  /** Lower hex; the same for every run of the seed. */
  readonly digest: string;
  readonly events: number;
  readonly dockets: number;
  readonly sealed: number;
}

/** After healing, everything must be settled within this time. */
const patienceMs = 300_000;

/** Runs the world of one seed to its end or to the first broken invariant. */
export async function simulate(seed: number, weakness: Weakness = {}): Promise<Outcome> {
  const scenario = drawScenario(seed);
  const world = new World(scenario, weakness);
  const unhandled = (error: unknown) => world.onUnhandled(error);
  process.on('unhandledRejection', unhandled);
  try {
    await live(world, scenario);
  } finally {
    process.off('unhandledRejection', unhandled);
  }
  const { ledger } = world.service;
  return {
    scenario,
    broken: world.broken,
    trace: world.trace.lines,
    digest: world.trace.digest(),
    events: world.agenda.done,
    dockets: ledger.dockets.length,
    sealed: ledger.sealed.size,
  };
}

async function live(world: World, scenario: Scenario): Promise<void> {
  world.trace.add('WORLD', describeScenario(scenario));
  world.begin();
  planFaults(world, scenario);
  world.workload.plan(scenario.transactions, 1000, scenario.faultsUntilMs);
  await world.run(scenario.faultsUntilMs);
  if (world.broken !== undefined) return;
  heal(world);
  await world.run(scenario.faultsUntilMs + patienceMs, () => world.isSettled);
  if (world.broken === undefined) world.judgeEnd();
}

import type { Random } from '#kit/testing/random.ts';
import type { Scenario } from './scenario.ts';
import type { World } from './world.ts';

/** Snapshots of keys are faulty, members drop their keys, and clients submit sealed transactions again. */
export function planKeyFaults(world: World, scenario: Scenario, random: Random): void {
  world.service.keyFaults = random.pick([0, 0.3, 0.7]);
  planRepeats(world, scenario, random.fork('repeats'));
  planDrops(world, scenario, random.fork('drops'));
}

function planRepeats({ eventQueue, chains, coverage }: World, scenario: Scenario, random: Random): void {
  const next = () =>
    eventQueue.after(random.between(200, 4000), () => {
      if (eventQueue.elapsedMs > scenario.faultsUntilMs) return;
      if (random.pick(chains).workload.repeat(random))
        coverage.add('sealed transaction submitted again late');
      next();
    });
  next();
}

function planDrops({ eventQueue, members, coverage }: World, scenario: Scenario, random: Random): void {
  const meanMs = random.pick([3000, 10_000, 30_000]);
  const next = () =>
    eventQueue.after(random.between(0, 2 * meanMs), () => {
      if (eventQueue.elapsedMs > scenario.faultsUntilMs) return;
      for (const register of random.pick(members).engine?.registers.all() ?? []) {
        if (!register.keys.isEmpty) coverage.add('keys dropped after their load');
        register.keys.discard();
      }
      next();
    });
  next();
}

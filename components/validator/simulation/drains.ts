import type { Random } from '#kit/testing/random.ts';
import type { Engine } from '../engine.ts';
import type { Member } from './member.ts';
import type { Scenario } from './scenario.ts';
import type { World } from './world.ts';

/** Drains members and ends it, as an operator does that rolls through them. */
class Drains {
  readonly #world: World;
  /** Processes that were seen draining or told to. */
  readonly #seen = new WeakSet<Engine>();

  constructor(world: World) {
    this.#world = world;
  }

  /** What was drained when its process died is drained when it is started again. */
  look(): void {
    for (const { engine } of this.#world.members) {
      if (engine?.drain.isDraining !== true || this.#seen.has(engine)) continue;
      this.#seen.add(engine);
      this.#world.coverage.add('drained member started again');
    }
  }

  turn({ id, engine }: Member): void {
    if (engine === undefined) return;
    const begins = !engine.drain.isDraining;
    this.#seen.add(engine);
    this.#world.trace.add(id, begins ? 'is drained' : 'is not drained any more');
    if (begins) this.#world.coverage.add('member drained');
    // A process that dies meanwhile, or has no room on its disk, does it or does not.
    const turned = begins ? engine.drain.begin() : engine.drain.end();
    turned.catch(() => undefined);
  }

  endAll(): void {
    for (const member of this.#world.members) if (member.engine?.drain.isDraining === true) this.turn(member);
  }
}

/** Members are drained and take part again by turns; in the end all of them take part. */
export function planDrains(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { agenda, members } = world;
  const drains = new Drains(world);
  const next = () =>
    agenda.after(random.between(300, 6000), () => {
      drains.look();
      if (agenda.elapsedMs > faultsUntilMs) drains.endAll();
      else drains.turn(random.pick(members));
      next();
    });
  next();
}

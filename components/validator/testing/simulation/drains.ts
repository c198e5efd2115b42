import type { Random } from '#kit/testing/random.ts';
import type { Engine } from '../../engine.ts';
import type { Member } from './member.ts';
import type { Scenario } from './scenario.ts';
import type { World } from './world.ts';

/** Drains and undrains members, like an operator in a rolling update. */
class Drains {
  readonly #world: World;
  /** Engines that were seen or made draining. */
  readonly #seen = new WeakSet<Engine>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A member that was draining when its process died is draining after its restart. */
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
    // A process that dies meanwhile, or has a full disk, may or may not do it.
    const turned = begins ? engine.drain.begin() : engine.drain.end();
    turned.catch(() => undefined);
  }

  endAll(): void {
    for (const member of this.#world.members) if (member.engine?.drain.isDraining === true) this.turn(member);
  }
}

/** Members are drained and undrained in turn; in the end all are undrained. */
export function planDrains(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, members } = world;
  const drains = new Drains(world);
  const next = () =>
    eventQueue.after(random.between(300, 6000), () => {
      drains.look();
      if (eventQueue.elapsedMs > faultsUntilMs) drains.endAll();
      else drains.turn(random.pick(members));
      next();
    });
  next();
}

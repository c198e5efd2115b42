import type { Random } from '#kit/testing/random.ts';
import type { Disk } from './disk.ts';
import type { Member } from './member.ts';
import type { Scenario } from './scenario.ts';
import type { World } from './world.ts';

/** A member that may become faulty without exceeding the fault bound of any set at any height. */
function pickSpare(world: World, random: Random): Member | undefined {
  const { faultModel, members } = world;
  const spare = members.filter(({ id }) => !faultModel.isFaulty(id) && faultModel.tolerates(id));
  return spare.length === 0 ? undefined : random.pick(spare);
}

/** A member continues with an older copy of its volume, so that it may vote against what it has forgotten. */
export function planOldVolume(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, trace, faultModel, coverage } = world;
  const copiedMs = random.between(0.1, 0.6) * faultsUntilMs;
  eventQueue.after(copiedMs, () => {
    const member = pickSpare(world, random);
    if (member === undefined) return;
    faultModel.markFaulty(member.id, false);
    const old = member.disk.copy();
    eventQueue.after(random.between(0.05, 0.4) * faultsUntilMs, () => {
      while (member.processes.length > 0) member.crash(false);
      trace.add('WORLD', `an old volume is put back at ${member.id}`);
      coverage.add('old volume at a member');
      member.start(old);
    });
  });
}

/**
 * The volume of a member is copied and the owner removes the member. Once it is in no set, it starts from the old copy and is
 * added again. It may have forgotten its votes of the heights before its removal, and is correct at later heights.
 */
export function planOldReturn(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, members, chains, faultModel } = world;
  const wish = (id: string, way: 'in' | 'out') => {
    for (const { preferences, first } of chains) if (first.includes(id)) preferences.set(id, way);
  };
  eventQueue.after(random.between(0.05, 0.3) * faultsUntilMs, () => {
    const honest = members.filter(
      ({ id }) => !faultModel.isFaulty(id) && chains.some(({ first }) => first.includes(id)),
    );
    const member = random.pick(honest);
    const old = member.disk.copy();
    const from = new Map(chains.map(({ registerId }) => [registerId, heightOf(member, registerId)]));
    wish(member.id, 'out');
    const next = () =>
      eventQueue.after(random.between(50, 500), () => {
        if (eventQueue.elapsedMs > faultsUntilMs) return;
        if (putBack(world, { member, old, from })) wish(member.id, 'in');
        else next();
      });
    next();
  });
}

function heightOf({ engine }: Member, registerId: string): number {
  return engine?.registers.get(registerId)?.state.height ?? 0;
}

interface Copied {
  readonly member: Member;
  readonly old: Disk;
  /** Its heights when the copy was made. */
  readonly from: ReadonlyMap<string, number>;
}

function putBack({ faultModel, chains, trace, coverage }: World, { member, old, from }: Copied): boolean {
  const { id } = member;
  if (faultModel.isFaulty(id) || !faultModel.isOutside(id)) return false;
  const heights = new Map(
    chains.map(({ registerId, highest }) => [registerId, { from: from.get(registerId) ?? 0, to: highest }]),
  );
  if (!faultModel.toleratesAt(id, heights)) return false;
  faultModel.markFaultyAt(id, heights);
  while (member.processes.length > 0) member.crash(false);
  for (const chain of chains) chain.forget(id);
  trace.add('WORLD', `an old volume is put back at ${id}, which has left`);
  coverage.add('old volume at one that left');
  member.start(old);
  return true;
}

/** All members are down while the register service's database is restored to an earlier state. */
export function planOldStore(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, members, chains, coverage } = world;
  eventQueue.after(random.between(0.3, 0.9) * faultsUntilMs, () => {
    for (const member of members) while (member.processes.length > 0) member.crash(false);
    for (const chain of chains) {
      const { length } = chain.ledger.dockets;
      if (length < 2) continue;
      coverage.add('old register service');
      chain.restoreStore(Math.max(1, length - random.whole(1, 4)));
    }
    for (const member of members) {
      eventQueue.after(random.between(10, 3000), () => {
        if (member.processes.length === 0) member.start();
      });
    }
  });
}

export function planSecondStart(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, trace, faultModel, coverage } = world;
  eventQueue.after(random.between(0.1, 0.8) * faultsUntilMs, () => {
    const member = pickSpare(world, random);
    if (member === undefined || member.processes.length === 0) return;
    faultModel.markFaulty(member.id, false);
    trace.add('WORLD', `${member.id} is started a second time with a copy of its volume`);
    coverage.add('second start of an identity');
    member.start(member.disk.copy());
  });
}

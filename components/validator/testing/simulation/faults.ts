import { createRandom, type Random } from '#kit/testing/random.ts';
import type { Envelope } from '../../network/transport/transport.ts';
import type { Chain } from './chain.ts';
import { planDrains } from './drains.ts';
import { Governor } from './governor.ts';
import { planKeyFaults } from './key-faults.ts';
import { simulatedKey } from './keys.ts';
import type { Member } from './member.ts';
import { calm } from './network.ts';
import { planOldReturn, planOldStore, planOldVolume, planSecondStart } from './restores.ts';
import type { Scenario } from './scenario.ts';
import { short } from './trace.ts';
import type { World } from './world.ts';

/** Plans the faults of a world until it heals. The random fork of each fault is named after its function. */
export function planFaults(world: World, scenario: Scenario): void {
  const { faults, seed } = scenario;
  const draw = (name: string) => createRandom(seed).fork(`faults/${name}`);
  const acts: [boolean, (world: World, scenario: Scenario, random: Random) => void][] = [
    [faults.crashes || faults.powerLosses, planCrashes],
    [faults.crashes || faults.powerLosses, planAimedCrashes],
    [faults.partitions, planPartitions],
    [faults.lossyLinks, planLoss],
    [faults.chosenLoss, planChosenLoss],
    [faults.awayServices, planAbsences],
    [faults.wrongClocks, planClocks],
    [faults.setChanges, planSetChanges],
    [faults.oldVolume, planOldVolume],
    [faults.oldReturn, planOldReturn],
    [faults.oldStore, planOldStore],
    [faults.secondStart, planSecondStart],
    [faults.drains, planDrains],
    [scenario.keyFilters !== 'off', planKeyFaults],
    [faults.earlierSigner, planEarlierSigner],
  ];
  for (const [happens, plan] of acts) if (happens) plan(world, scenario, draw(plan.name));
}

/** Ends all faults except Byzantine behaviour: links and clocks are correct, and every member runs. */
export function heal(world: World): void {
  world.trace.add('WORLD', 'heals');
  const { conditions } = world.network;
  Object.assign(conditions, calm(), { sides: conditions.sides });
  conditions.sides.clear();
  world.service.loss = 0;
  world.service.keyFaults = 0;
  world.signing.isEarlier = false;
  world.onSigned = undefined;
  for (const member of world.members) {
    if (!world.faultModel.isByzantine(member.id)) member.skewMs = 0;
    while (member.processes.length > 1) member.crash(false);
    if (member.processes.length === 0) member.start();
  }
  world.network.reconnect();
}

function kill(world: World, { faults }: Scenario, random: Random, member: Member): void {
  const losesPower = faults.powerLosses && (!faults.crashes || random.chance(0.5));
  member.crash(losesPower);
  world.coverage.add(losesPower ? 'member lost power' : 'member killed');
  world.eventQueue.after(random.pick([50, 500, 3000, 10_000]) * random.between(0.5, 1.5), () => {
    if (member.processes.length === 0) member.start();
  });
}

function planCrashes(world: World, scenario: Scenario, random: Random): void {
  const { eventQueue, members } = world;
  const meanMs = random.pick([1500, 6000, 15_000]);
  const next = () =>
    eventQueue.after(random.between(0, 2 * meanMs), () => {
      if (eventQueue.elapsedMs > scenario.faultsUntilMs) return;
      const member = random.pick(members);
      if (member.processes.length > 0) kill(world, scenario, random, member);
      if (random.chance(0.1)) {
        world.coverage.add('all members killed at once');
        for (const each of members) kill(world, scenario, random, each);
      }
      next();
    });
  next();
}

/** Kills a member within milliseconds of its own signature: around the disk, the wire and the store. */
function planAimedCrashes(world: World, scenario: Scenario, random: Random): void {
  const share = random.pick([0.005, 0.02, 0.05]);
  world.onSigned = (validatorId) => {
    if (!random.chance(share)) return;
    world.eventQueue.after(random.pick([0.5, 5, 20]) * random.next(), () => {
      const member = world.members.find(({ id }) => id === validatorId);
      if (member === undefined || world.eventQueue.elapsedMs > scenario.faultsUntilMs) return;
      if (member.processes.length > 0) kill(world, scenario, random, member);
    });
  };
}

function planPartitions(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, members, network, trace, coverage } = world;
  const meanMs = random.pick([2000, 8000]);
  const next = () =>
    eventQueue.after(random.between(0.2, 2) * meanMs, () => {
      if (eventQueue.elapsedMs > faultsUntilMs) return;
      const { sides } = network.conditions;
      sides.clear();
      const parts = random.pick([1, 2, 2, 3]);
      if (parts > 1) for (const { id } of members) sides.set(id, random.whole(1, parts));
      const text = members.map(({ id }) => `${id}:${sides.get(id) ?? 0}`).join(' ');
      trace.add('WORLD', `sides ${text}`);
      if (network.isPartitioned) coverage.add('partition');
      network.reconnect();
      next();
    });
  next();
}

function planLoss(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, network, trace } = world;
  const meanMs = random.pick([3000, 10_000]);
  const next = () =>
    eventQueue.after(random.between(0, 2) * meanMs, () => {
      if (eventQueue.elapsedMs > faultsUntilMs) return;
      const loss = random.pick([0, 0.05, 0.2, 0.5]);
      const duplication = random.pick([0, 0.1, 0.5]);
      const delayMs = { from: 0.2, to: random.pick([5, 200, 2000]) };
      Object.assign(network.conditions, { loss, duplication, delayMs });
      trace.add('WORLD', `links lose ${loss}, double ${duplication}, take ${delayMs.to} ms`);
      if (loss > 0 && duplication > 0) world.coverage.add('links that lose, double and delay');
      if (random.chance(0.3)) network.reconnect();
      next();
    });
  next();
}

interface RoundPosition {
  readonly kind: string;
  readonly height: number;
  readonly round: number;
}

function placeOf(envelope: Envelope): RoundPosition | undefined {
  if (envelope.kind === 'proposal') return { ...envelope.proposal, kind: 'proposal' };
  return envelope.kind === 'vote' ? envelope.vote : undefined;
}

/** Draws for each round which members receive its proposals, prevotes and precommits, which causes locks without decisions. */
function planChosenLoss(world: World, { seed, faultsUntilMs }: Scenario, random: Random): void {
  const shares: Readonly<Record<string, number>> = {
    proposal: random.pick([0, 0.3]),
    prevote: random.pick([0.1, 0.3, 0.5]),
    precommit: random.pick([0.3, 0.6, 0.9]),
  };
  const lastRound = random.pick([2, 4, 8]);
  const lateMs = random.pick([0, 2000, 6000]);
  world.network.conditions.interfere = (_from, to, envelope) => {
    const place = placeOf(envelope);
    if (place === undefined || world.eventQueue.elapsedMs > faultsUntilMs || place.round > lastRound)
      return 0;
    const { kind, height, round } = place;
    const drawn = createRandom(seed).fork(`${height}/${round}/${kind}/${to}`);
    if (!drawn.chance(shares[kind] ?? 0)) return 0;
    world.coverage.add('loss that an adversary chose');
    return lateMs === 0 ? 'drop' : lateMs;
  };
}

function planAbsences(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, service, signing, trace } = world;
  service.loss = random.pick([0, 0.05, 0.2]);
  const next = () =>
    eventQueue.after(random.between(500, 12_000), () => {
      if (eventQueue.elapsedMs > faultsUntilMs) return;
      const forMs = random.pick([200, 2000, 8000]);
      const isSigner = random.chance(0.4);
      if (isSigner) signing.beSilent(forMs);
      else service.goAway(forMs);
      world.coverage.add(isSigner ? 'signing component away' : 'register service away');
      trace.add(
        'WORLD',
        `${isSigner ? 'the signing component' : 'the register service'} is away for ${forMs} ms`,
      );
      next();
    });
  next();
}

/** Replicas of two versions of the signing component answer by turns, as during a rolling upgrade. */
function planEarlierSigner(world: World, { faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, signing, trace } = world;
  const next = () =>
    eventQueue.after(random.between(50, 4_000), () => {
      if (eventQueue.elapsedMs > faultsUntilMs) return;
      signing.isEarlier = !signing.isEarlier;
      if (signing.isEarlier) world.coverage.add('signing component of the version before');
      trace.add(
        'WORLD',
        `the signing component is ${signing.isEarlier ? 'of the version before' : 'current'}`,
      );
      next();
    });
  next();
}

/** Correct clocks stay within half of the policy's precision; Byzantine ones are arbitrary. */
function planClocks(world: World, _scenario: Scenario, random: Random): void {
  world.coverage.add('honest clocks that differ');
  for (const member of world.members) {
    const isByzantine = world.faultModel.isByzantine(member.id);
    member.skewMs = isByzantine
      ? random.pick([-600_000, -5000, 5000, 60_000, 600_000])
      : random.between(-200, 200);
  }
}

/** The owner changes sets by control transactions; a change that is outdated on arrival is refused. */
function planSetChanges(world: World, { faults, faultsUntilMs }: Scenario, random: Random): void {
  const { eventQueue, chains, trace } = world;
  const governors = chains.map((chain) => ({ chain, governor: governorOf(world, chain, random) }));
  const next = () =>
    eventQueue.after(random.between(500, faults.oldReturn ? 2500 : 6000), () => {
      if (eventQueue.elapsedMs > faultsUntilMs) return;
      const { chain, governor } = random.pick(governors);
      const { state } = chain;
      const proposed = state === undefined || state.height === 0 ? undefined : governor.change(state);
      if (proposed !== undefined) {
        trace.add('owner', `${chain.label}${short(proposed.signed.txId)} ${proposed.what}`);
        chain.offer(proposed.signed, proposed.change);
      }
      next();
    });
  next();
}

function governorOf({ eventQueue, members, faultModel }: World, chain: Chain, random: Random): Governor {
  return new Governor({
    owner: simulatedKey(1),
    random,
    candidates: members,
    preferences: chain.preferences,
    fewest: Math.max(2, chain.first.length - 2),
    nowMs: () => eventQueue.clock(() => 0).nowMs(),
    mayChange: (change) => faultModel.toleratesChange(chain.registerId, change),
  });
}

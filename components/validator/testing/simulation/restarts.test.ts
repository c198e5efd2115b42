import { describe, expect, it } from 'vitest';
import type { Envelope } from '../../network/transport/transport.ts';
import type { Scenario } from './scenario.ts';
import { World } from './world.ts';

/** A world without faults other than those of a test. */
function quiet(size: number): Scenario {
  const none = {
    crashes: false,
    powerLosses: false,
    partitions: false,
    lossyLinks: false,
    chosenLoss: false,
    awayServices: false,
    drains: false,
    earlierSigner: false,
    wrongClocks: false,
    setChanges: false,
    oldVolume: false,
    oldReturn: false,
    oldStore: false,
    secondStart: false,
  };
  const policy = { leaderElection: { heartbeatIntervalMs: 200, leaderTimeoutMs: 1000 } };
  return {
    seed: 1,
    size,
    reserve: 0,
    policy,
    registers: [{ members: Array.from({ length: size }, (_, place) => place), transactions: 0 }],
    faultsUntilMs: 0,
    byzantine: new Map(),
    keyFilters: 'on' as const,
    faults: none,
  };
}

async function begun(size: number): Promise<World> {
  const world = new World(quiet(size));
  world.begin();
  await world.run(3000);
  expect(world.chains[0]?.ledger.dockets).toHaveLength(1);
  return world;
}

/** Three of four vote for a docket and none of them receives enough precommits. */
function withoutDecision(_from: string, to: string, envelope: Envelope): 'drop' | 0 {
  if (envelope.kind === 'proposal') return to === 'validator-2' ? 'drop' : 0;
  if (envelope.kind !== 'vote' || envelope.vote.kind === 'prevote') return 0;
  const { validatorId } = envelope.vote;
  const missed = to === 'validator-3' ? ['validator-0', 'validator-3'] : ['validator-3'];
  return missed.includes(validatorId) ? 'drop' : 0;
}

async function settles(world: World): Promise<void> {
  await world.run(world.eventQueue.elapsedMs + 120_000, () => world.isSettled);
  expect(world.broken).toBeUndefined();
  expect(world.isSettled).toBe(true);
}

describe('after crashes of members', () => {
  it('a lock can still be proven, although a member whose vote it rests on has forgotten it', async () => {
    const world = await begun(4);
    const forgetful = world.members[3];
    const old = forgetful?.disk.copy();
    world.network.conditions.interfere = withoutDecision;
    world.chains[0]?.workload.plan(1, 3000, 3001);
    const hasLock = () =>
      world.members[0]?.engine?.registers.get(world.chains[0]?.registerId ?? '')?.machine.locked !==
      undefined;
    await world.run(60_000, hasLock);
    await world.run(world.eventQueue.elapsedMs + 4000);
    expect(hasLock()).toBe(true);
    for (const member of world.members) member.crash(false);
    world.network.conditions.interfere = undefined;
    world.faultModel.markFaulty('validator-3', false);
    for (const member of world.members) member.start(member === forgetful ? old : undefined);
    await settles(world);
  });

  it('votes that the signing component had not answered block no member', async () => {
    for (let afterMs = 0; afterMs < 2500; afterMs += 250) {
      const world = await begun(3);
      world.signing.beSilent(8000);
      world.chains[0]?.workload.plan(3, 3000, 3001);
      await world.run(3100 + afterMs);
      const proposer = world.members[1];
      proposer?.crash(false);
      proposer?.start();
      await settles(world);
    }
  });
});

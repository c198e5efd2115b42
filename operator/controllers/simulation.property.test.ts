import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findCondition } from '../api/conditions.ts';
import type { Condition } from '../api/object.ts';
import { pods } from '../kube/kinds.ts';
import { isRecord, type KubeObject, type Resource } from '../kube/resource.ts';
import { registers, tenants, validatorSets } from './reconciler/resources.ts';
import { Installation, type SimulationEvent, simulationEvents } from './testing/simulation/events.ts';
import { type Mutation, mutations, noMutation } from './testing/simulation/mutations.ts';
import { World } from './testing/simulation/world.ts';

/**
 * Simulation of all controllers in two processes, from the custom resources to pods and services. People edit, members are
 * lost, calls fail, caches are stale, and processes crash after any call. The invariants must hold at any time, and the
 * state must converge after the faults.
 */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const MINUTE_MS = 60_000;
const RESYNC_MS = 6 * MINUTE_MS;
/** Reconciles of one object until it has converged; a set has this number per member. */
const MAX_RECONCILES = 20;
const MAX_MEMBERS = 7;
/**
 * Reconciles of one register. Two for each member, because a replaced member stops answering and answers again, and the
 * register reads its state after both; 12 for its own changes, resyncs and broken watches.
 */
const MAX_REGISTER_RECONCILES = 12 + 2 * MAX_MEMBERS;

function isSettled({ metadata, status }: KubeObject): boolean {
  if (!isRecord(status) || metadata.deletionTimestamp !== undefined) return false;
  const ready = findCondition((status['conditions'] ?? []) as readonly Condition[], 'Ready');
  const isSeen = status['observedGeneration'] === metadata.generation;
  return isSeen && ready?.status === 'True' && ready.reason === 'Reconciled';
}

function isConverged(
  { kubernetes, organizations, ledgers }: World,
  { replicas, image }: Installation,
): boolean {
  const specOf = (resource: Resource, name: string) => {
    const spec = kubernetes.find(resource, name)?.['spec'];
    return isRecord(spec) ? spec : {};
  };
  const members = kubernetes.list(pods).filter(({ metadata }) => metadata.name.startsWith('main-'));
  return (
    [tenants, registers, validatorSets].every((resource) => kubernetes.list(resource).every(isSettled)) &&
    members.length === replicas &&
    members.every(({ spec }) => JSON.stringify(spec).includes(image)) &&
    organizations.all().some(({ name }) => name === specOf(tenants, 'acme')['displayName']) &&
    ledgers.all().some(({ title }) => title === specOf(registers, 'invoices')['title'])
  );
}

/** Seeded pseudo-random numbers (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Number of reconciles of a kind by the running processes. */
async function reconcileCount(world: World, controller: string): Promise<number> {
  const read = world.processes.map(({ metrics }) =>
    metrics.read('controller_runtime_reconcile_total', { controller }),
  );
  return (await Promise.all(read)).reduce((sum, each) => sum + each, 0);
}

/** Ends all faults and checks that the state converges in few reconciles. */
async function settle(world: World, installation: Installation): Promise<readonly string[]> {
  const limits = {
    tenant: 2 * MAX_RECONCILES,
    register: 2 * MAX_REGISTER_RECONCILES,
    validatorset: (MAX_MEMBERS + 1) * MAX_RECONCILES,
  };
  const before = new Map<string, number>();
  for (const controller of Object.keys(limits))
    before.set(controller, await reconcileCount(world, controller));
  const isOver = () => {
    installation.end();
    return world.invariants.violations.length > 0 || isConverged(world, installation);
  };
  const tookMs = await world.until(isOver, 10 * MINUTE_MS);
  const violations = tookMs === undefined ? [`does not converge: ${world.describe()}`] : [];
  for (const [controller, bound] of Object.entries(limits)) {
    const made = (await reconcileCount(world, controller)) - (before.get(controller) ?? 0);
    if (made > bound) violations.push(`${made} reconciles of ${controller}, at most ${bound}`);
  }
  return violations;
}

/** Restarts all processes in the converged state and checks that they write nothing. */
async function secondRun(world: World): Promise<readonly string[]> {
  await world.pass(RESYNC_MS);
  world.restart();
  const calls = world.invariants.writes.length;
  const services = world.serviceWrites();
  await world.pass(MINUTE_MS);
  const written = [...world.invariants.writes.slice(calls)];
  if (world.serviceWrites() > services) written.push('a service');
  return written.map((what) => `the second run writes ${what}`);
}

/**
 * Simulates an installation under events, then without faults, then with new processes.
 * @returns all violations
 */
async function simulate(
  seed: number,
  events: readonly SimulationEvent[],
  mutation: Mutation = noMutation,
): Promise<readonly string[]> {
  const world = new World(mutation);
  const installation = new Installation(world, seededRandom(seed));
  installation.begin();
  for (const event of events) await installation.apply(event);
  const unsettled = await settle(world, installation);
  const violations = [...world.invariants.violations, ...unsettled];
  return violations.length > 0 ? violations : [...(await secondRun(world)), ...world.invariants.violations];
}

test(
  'under any events only the leader writes, quorums remain, nothing is created twice or deleted early, and the state converges',
  async () => {
    const seeds = fc.integer();
    const events = fc.array(simulationEvents, { maxLength: 25 });
    const holds = fc.asyncProperty(seeds, events, async (seed, applied) => {
      expect(await simulate(seed, applied)).toEqual([]);
    });
    await fc.assert(holds, { numRuns: full ? 1_000 : 20 });
  },
  full ? 3_600_000 : 120_000,
);

describe('the simulation detects an operator that', () => {
  const renamed = (to: number): SimulationEvent => ({ what: 'rename', to });
  const later: SimulationEvent = { what: 'pass', seconds: 60 };
  const cases: Readonly<
    Record<keyof typeof mutations, readonly [events: readonly SimulationEvent[], finds: RegExp]>
  > = {
    'writes without the lease': [
      [later, renamed(1), { what: 'freeze', afterMs: 8, seconds: 30 }],
      /wrote while operator-\d+ held the lease/,
    ],
    'trusts every member': [
      [later, { what: 'cut', ordinal: 1 }, { what: 'version', to: 2, isBad: false }, later],
      /keeps 2 of 3/,
    ],
    'removes finalizers before the cleanup': [
      [later, { what: 'delete', kind: 'Tenant' }, later],
      /Tenant beta was removed before its cleanup/,
    ],
    'writes in every reconcile': [[], /the second run writes/],
    'deletes a volume claim': [[later, renamed(1)], /a volume claim was deleted/],
    'reports an older generation': [[renamed(1), later], /observedGeneration 0 after/],
    'creates an organisation in every reconcile': [[], /organisations more than resources/],
  };
  test.each(Object.entries(cases))(
    '%s',
    async (name, [events, finds]) => {
      const found = await simulate(1, events, mutations[name as keyof typeof mutations]);
      expect(found).toContainEqual(expect.stringMatching(finds));
    },
    60_000,
  );
});

test('a new leader with half-open watches does not undo writes of the former leader', async () => {
  const events: readonly SimulationEvent[] = [
    { what: 'pass', seconds: 62 },
    { what: 'deafen' },
    { what: 'rename', to: 1 },
    { what: 'retitle', to: 1 },
    { what: 'scale', to: 5 },
    { what: 'pass', seconds: 20 },
    { what: 'freeze', afterMs: 0, seconds: 30 },
  ];
  expect(await simulate(1, events)).toEqual([]);
}, 60_000);

test('a member that no register lists joins although the disruption budget refuses its eviction', async () => {
  const events: readonly SimulationEvent[] = [
    { what: 'freeze', afterMs: 0, seconds: 4 },
    { what: 'scale', to: 1 },
    { what: 'cut', ordinal: 2 },
    { what: 'pass', seconds: 13 },
  ];
  expect(await simulate(0, events)).toEqual([]);
}, 60_000);

test('the rollout of seven members after a loss and half-open watches needs no more reconciles than the bounds', async () => {
  const events: readonly SimulationEvent[] = [
    { what: 'pass', seconds: 1 },
    { what: 'scale', to: 7 },
    { what: 'pass', seconds: 4 },
    { what: 'version', to: 3, isBad: true },
    { what: 'mute' },
    { what: 'lose', ordinal: 1 },
  ];
  expect(await simulate(6, events)).toEqual([]);
}, 60_000);

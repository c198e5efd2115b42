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
 * All controllers in two processes, from the custom resources to pods and services, while people edit, members are
 * lost, calls fail, caches are behind and processes die after any call: what must hold whatever happens, and that it
 * ends as wanted (notes/operator.md 3.6).
 */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const MINUTE_MS = 60_000;
const RESYNC_MS = 6 * MINUTE_MS;
/** At one object until it is as wanted; a set has that many for each of its members. */
const MAX_RECONCILES = 20;
const MAX_MEMBERS = 7;

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

/** Chance that a seed decides (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Looks at objects of a kind so far, by the processes that live. */
async function reconcileCount(world: World, controller: string): Promise<number> {
  const read = world.processes.map(({ metrics }) =>
    metrics.read('controller_runtime_reconcile_total', { controller }),
  );
  return (await Promise.all(read)).reduce((sum, each) => sum + each, 0);
}

/** Faults end: it becomes as wanted, in few looks. */
async function settle(world: World, installation: Installation): Promise<readonly string[]> {
  const limits = {
    tenant: 2 * MAX_RECONCILES,
    register: 2 * MAX_RECONCILES,
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
  const violations = tookMs === undefined ? [`does not end as wanted: ${world.describe()}`] : [];
  for (const [controller, bound] of Object.entries(limits)) {
    const made = (await reconcileCount(world, controller)) - (before.get(controller) ?? 0);
    if (made > bound) violations.push(`${made} looks of ${controller}, at most ${bound}`);
  }
  return violations;
}

/** New processes look at everything that is as wanted; until then what is counted in passing was looked at again. */
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
 * An installation under what happens, then without faults, then in new processes.
 * @returns everything that must never be
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
  'whatever happens: one leader writes, the quorum stays, nothing is made twice or goes too soon; and it ends as wanted',
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

describe('an operator with an error is found out when it', () => {
  const renamed = (to: number): SimulationEvent => ({ what: 'rename', to });
  const later: SimulationEvent = { what: 'pass', seconds: 60 };
  const cases: Readonly<
    Record<keyof typeof mutations, readonly [events: readonly SimulationEvent[], finds: RegExp]>
  > = {
    'writes without the lease': [
      [later, renamed(1), { what: 'freeze', afterMs: 8, seconds: 30 }],
      /wrote while operator-\d+ held the lease/,
    ],
    'believes every member to be well': [
      [later, { what: 'cut', ordinal: 1 }, { what: 'version', to: 2, isBad: false }, later],
      /keeps 2 of 3/,
    ],
    'lets objects go before their cleanup': [
      [later, { what: 'delete', kind: 'Tenant' }, later],
      /Tenant beta was let go before its cleanup/,
    ],
    'writes whenever it looks': [[], /the second run writes/],
    'deletes a volume claim': [[later, renamed(1)], /a volume claim was deleted/],
    'says that it saw an older generation': [[renamed(1), later], /observedGeneration 0 after/],
    'makes an organisation at every look': [[], /organisations more than resources/],
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

test('a new leader whose watches had fallen silent undoes nothing that the former one did', async () => {
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

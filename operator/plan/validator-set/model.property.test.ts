import fc from 'fast-check';
import { expect, test } from 'vitest';
import { quorum } from '#core/ledger/consensus.ts';
import { validatorId } from '../../api/names.ts';
import { planSet } from './plan.ts';
import { tallies } from './quorum.ts';
import { World } from './testing/world.ts';

/** Invariants under edits, losses, crashes and bad versions in any order. */

type Happening =
  | { readonly what: 'replicas'; readonly to: number }
  | { readonly what: 'version'; readonly to: string; readonly isBad: boolean }
  | { readonly what: 'size'; readonly to: string }
  | { readonly what: 'suspend'; readonly to: boolean }
  | { readonly what: 'lose' | 'cut' | 'heal'; readonly ordinal: number }
  | { readonly what: 'bind' }
  | { readonly what: 'reconcile'; readonly steps: number }
  | { readonly what: 'stale' };

const ordinal = fc.nat({ max: 7 });
const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('replicas' as const), to: fc.integer({ min: 1, max: 8 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('version' as const),
      to: fc.constantFrom('v1', 'v2', 'v3'),
      isBad: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant('size' as const), to: fc.constantFrom('2Gi', '3Gi', '9Gi') }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('suspend' as const), to: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constantFrom('lose' as const, 'cut' as const, 'heal' as const),
      ordinal,
    }),
  },
  { weight: 1, arbitrary: fc.constant({ what: 'bind' as const }) },
  {
    weight: 9,
    arbitrary: fc.record({ what: fc.constant('reconcile' as const), steps: fc.integer({ min: 0, max: 12 }) }),
  },
  { weight: 2, arbitrary: fc.constant({ what: 'stale' as const }) },
);

/** One reconcile, with the invariants of its decisions. */
function reconcile(world: World, steps?: number): void {
  const facts = world.facts();
  const plan = planSet(facts);
  const replacements = plan.actions.filter((action) => action.kind === 'replace');
  expect(replacements.length).toBeLessThanOrEqual(1);
  for (const { replacement } of replacements) {
    const voting = world.voting();
    const counts = voting.includes(replacement.member.ordinal);
    const left = counts ? voting.length - 1 : voting.length;
    const needed = world.listed.length === 0 ? 0 : quorum(world.listed.length);
    // an existing quorum is never lost; a set of one member is the exception
    if (counts && world.hasQuorum() && world.listed.length > 1) expect(left).toBeGreaterThanOrEqual(needed);
    // an unreachable member is unknown and is not removed
    expect(world.unreachable.has(replacement.member.ordinal) && replacement.how === 'delete').toBe(
      world.unreachable.has(replacement.member.ordinal) &&
        facts.members[replacement.member.ordinal]?.pod?.isBroken === true,
    );
  }
  const before = world.statefulSet?.replicas ?? 0;
  if (!world.desired.suspend && plan.replicas < before) {
    expect(before - plan.replicas).toBe(1);
    const id = validatorId(`main-${plan.replicas}`);
    // a member that is listed by a reported register is not removed
    expect(tallies(facts).some(({ live }) => live.includes(id))).toBe(false);
    if (world.voting().length > 0) expect(world.listed).not.toContain(plan.replicas);
  }
  const claims = world.claims.size;
  world.carryOut(plan, steps);
  expect(world.claims.size).toBe(claims);
}

function happen(world: World, event: Happening): void {
  switch (event.what) {
    case 'replicas':
      world.desired.replicas = event.to;
      return;
    case 'version':
      world.desired.revision = event.isBad ? `${event.to}-bad` : event.to;
      if (event.isBad) world.bad.add(world.desired.revision);
      return;
    case 'size':
      if (Number.parseInt(event.to, 10) > Number.parseInt(world.desired.size, 10))
        world.desired.size = event.to;
      return;
    case 'suspend':
      world.desired.suspend = event.to;
      return;
    case 'lose':
      world.pods.delete(event.ordinal);
      return;
    case 'cut':
      world.unreachable.add(event.ordinal);
      return;
    case 'heal':
      world.unreachable.delete(event.ordinal);
      return;
    case 'bind':
      if (world.listed.length === 0)
        world.listed = [...world.pods.keys()].filter((each) => each < world.desired.replicas);
      return;
    case 'reconcile':
      reconcile(world, event.steps);
      world.pass();
      return;
    case 'stale':
      reconcile(world);
      return;
  }
}

/** A set of a given size whose pods run and seal a register. */
function begin(replicas: number): World {
  const world = new World();
  world.desired.replicas = replicas;
  for (let round = 0; round < 3; round += 1) {
    reconcile(world);
    world.pass();
  }
  happen(world, { what: 'bind' });
  return world;
}

function isDone(world: World): boolean {
  const { outcome, actions } = planSet(world.facts());
  return (
    outcome.reason === 'Reconciled' &&
    actions.length === 0 &&
    world.desired.replicas === world.statefulSet?.replicas
  );
}

/** Two members are lost and come back with a bad version while another one is to be removed. */
const brokenWhileOneLeaves: Happening[] = [
  { what: 'lose', ordinal: 0 },
  { what: 'replicas', to: 1 },
  { what: 'lose', ordinal: 1 },
  { what: 'version', to: 'v1', isBad: true },
  { what: 'reconcile', steps: 0 },
];

test('under any events quorums remain, listed members are not removed, volumes stay, and the state converges', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.array(happening, { maxLength: 60 }),
      (replicas, events) => {
        const world = begin(replicas);
        for (const event of events) happen(world, event);
        // end of all faults
        world.unreachable.clear();
        world.desired.suspend = false;
        world.desired.revision = 'v9';
        if (world.desired.replicas < 4) world.desired.replicas = 4;
        for (let round = 0; round < 60 && !isDone(world); round += 1) {
          reconcile(world);
          world.pass();
        }
        const plan = planSet(world.facts());
        const { outcome, actions } = plan;
        expect({ outcome, actions, listed: world.listed }).toMatchObject({
          outcome: { reason: 'Reconciled' },
          actions: [],
        });
        expect([...world.pods.values()].every(({ revision }) => revision === 'v9')).toBe(true);
        expect(world.statefulSet).toMatchObject({
          replicas: world.desired.replicas,
          claimSize: world.desired.size,
        });
        reconcile(world);
        const { writes } = world;
        reconcile(world);
        expect(world.writes).toBe(writes);
      },
    ),
    { numRuns: 150, examples: [[5, brokenWhileOneLeaves]] },
  );
}, 60_000);

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RetainedClaim, SetFacts } from './facts.ts';
import { planSet } from './plan.ts';
import { planRetainedClaims, retentionMs } from './retained-claims.ts';
import {
  makeFacts,
  makePod,
  makeRegister,
  makeReport,
  makeSet,
  NOW_MS,
  withMembers,
} from './testing/sets.ts';
import { World } from './testing/world.ts';

const claimOf = (ordinal: number, leftAtMs?: number): RetainedClaim => ({
  ordinal,
  name: `data-main-${ordinal}`,
  uid: `claim-${ordinal}`,
  resourceVersion: '7',
  leftAtMs,
});
const named = (...ordinals: readonly number[]) => ({
  members: ordinals.map((ordinal) => ({ name: `main-${ordinal}`, ordinal })),
});
const due = claimOf(4, NOW_MS - retentionMs);

/** A set of four with the claim of a fifth member. */
function four(claim: RetainedClaim, changes: Partial<SetFacts> = {}): SetFacts {
  return { ...makeFacts(4), retainedClaims: [claim], ...changes };
}

describe('the left-at annotation is', () => {
  test('set for a member that the status still lists', () => {
    const set = makeSet({ replicas: 4 }, { status: named(0, 1, 2, 3, 4) });
    expect(planRetainedClaims(four(claimOf(4), { set }))).toEqual([
      { kind: 'note', claim: claimOf(4), leftAtMs: NOW_MS },
    ]);
  });

  test('not set for a claim of an earlier set', () => {
    const set = makeSet({ replicas: 4 }, { status: named(0, 1, 2, 3) });
    expect(planRetainedClaims(four(claimOf(4), { set }))).toEqual([]);
  });

  test('not set while the pod terminates', () => {
    const set = makeSet({ replicas: 4 }, { status: named(0, 1, 2, 3, 4) });
    const ending = { ordinal: 4, name: 'main-4', pod: makePod(4, { isTerminating: true }) };
    const { members } = makeFacts(4);
    expect(planRetainedClaims(four(claimOf(4), { set, members: [...members, ending] }))).toEqual([]);
  });

  test('removed when the member is desired again', () => {
    const set = makeSet({ replicas: 5 });
    expect(planRetainedClaims(four(due, { set }))).toEqual([
      { kind: 'note', claim: due, leftAtMs: undefined },
    ]);
  });
});

describe('seven days later the volume', () => {
  test('is deleted', () => {
    expect(planRetainedClaims(four(due))).toEqual([{ kind: 'discard', claim: due }]);
  });

  test.each([
    ['a moment earlier', claimOf(4, NOW_MS - retentionMs + 1), {}],
    ['without an annotation', claimOf(4), {}],
    ['while the set is suspended', due, { set: makeSet({ replicas: 4, suspend: true }) }],
    ['while the StatefulSet is recreated', due, { statefulSet: undefined }],
    ['while no member can be queried', due, { unreachable: 'no identity' }],
    [
      'while no member reports a Register',
      due,
      { registers: [{ name: 'other', registerId: 'f'.repeat(32), isDeleting: false }] },
    ],
  ] as const)('stays %s', (_, claim, changes) => {
    expect(planRetainedClaims(four(claim, changes))).toEqual([]);
  });

  test('stays while a register lists its member, and while no member answers', () => {
    const listing = withMembers(four(due), ({ ordinal }) => ({
      report: makeReport(ordinal, [makeRegister(5)]),
    }));
    expect(planRetainedClaims(listing)).toEqual([]);
    const silent = withMembers(four(due, { registers: [] }), () => ({ report: undefined }));
    expect(planRetainedClaims(silent)).toEqual([]);
  });
});

test('under any changes no volume is deleted early, and none of a desired member', () => {
  const wishes = fc.record({ replicas: fc.integer({ min: 1, max: 6 }), suspend: fc.boolean() });
  const story = fc.array(fc.record({ desired: wishes, days: fc.integer({ min: 0, max: 9 }) }), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(story, (steps) => {
      const world = new World();
      for (const { desired, days } of steps) {
        Object.assign(world.desired, desired);
        for (let round = 0; round < 30; round += 1) {
          const plan = planSet(world.facts());
          for (const action of plan.actions) {
            if (action.kind !== 'discard') continue;
            expect(world.nowMs - (action.claim.leftAtMs ?? world.nowMs)).toBeGreaterThanOrEqual(retentionMs);
            expect(action.claim.ordinal).toBeGreaterThanOrEqual(world.desired.replicas);
            expect(world.pods.has(action.claim.ordinal)).toBe(false);
          }
          world.carryOut(plan);
          world.pass();
        }
        world.nowMs += days * 24 * 3_600_000;
      }
    }),
    { numRuns: 100 },
  );
}, 30_000);

test('a scaled-down set keeps surplus volumes for a week and then deletes them', () => {
  const world = new World();
  const live = (rounds: number) => {
    for (let round = 0; round < rounds; round += 1) {
      world.carryOut(planSet(world.facts()));
      world.pass();
    }
  };
  world.desired.replicas = 6;
  live(20);
  world.desired.replicas = 4;
  live(40);
  expect([...world.claims.keys()]).toEqual([0, 1, 2, 3, 4, 5]);
  expect([...world.leftAtMs.keys()].sort()).toEqual([4, 5]);
  world.nowMs += retentionMs - 24 * 3_600_000;
  live(2);
  expect(world.claims.size).toBe(6);
  world.nowMs += 24 * 3_600_000;
  live(2);
  expect([...world.claims.keys()]).toEqual([0, 1, 2, 3]);
});

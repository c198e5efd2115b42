import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseBlueprint } from '#core/blueprint/model/parse.ts';
import { sitePermit } from '../testing/world.ts';
import { nextRole, type Walked, walkOf } from './walk.ts';

const parsed = parseBlueprint(sitePermit() as never);
if (!('blueprint' in parsed)) throw new Error('the permit cannot be parsed');
const { blueprint } = parsed;

function stepOf(actionId: number, routeId: string | undefined, next: number[], at: number) {
  return {
    actionId,
    isRejection: routeId === undefined,
    txId: String(at),
    sealedAt: new Date(at),
    routing: { routeId, nextActions: next.map((id) => ({ actionId: id })) } as never,
  };
}

const walked = (over: Partial<Walked>): Walked => ({
  blueprint,
  steps: [],
  current: [0],
  hasEnded: false,
  notes: [],
  ...over,
});

describe('the walk through a workflow', () => {
  it('counts a rejection neither as a route nor as the action done', () => {
    const steps = [stepOf(0, 'risky', [1], 1), stepOf(1, undefined, [0], 2)];
    const walk = walkOf(walked({ steps }));
    expect(walk.steps.map(({ status }) => status)).toEqual(['Current', 'Pending', 'Pending', 'Pending']);
    expect(walk.routesTaken).toEqual([{ actionId: 0, routeId: 'risky', nextActionIds: [1] }]);
    expect(walk.log.filter(({ kind }) => kind === 'sealed').map(({ txId }) => txId)).toEqual(['1', '2']);
    expect(walk.log.map(({ kind }) => kind)).toEqual(['sealed', 'routed', 'delivered', 'sealed', 'routed']);
  });

  it('puts notes between steps by their time', () => {
    const notes = [{ at: new Date(2).toISOString(), kind: 'error', message: 'm' }] as const;
    const steps = [stepOf(0, 'plain', [2], 1), stepOf(2, 'refused', [], 3)];
    const { log } = walkOf(walked({ steps, notes, current: [], hasEnded: true }));
    const kinds = log.map(({ kind }) => kind).filter((kind) => kind === 'sealed' || kind === 'error');
    expect(kinds).toEqual(['sealed', 'error', 'sealed']);
    expect(log.at(-2)?.message).toContain('the end');
  });

  it('names the sender of the first action that may be taken', () => {
    expect(nextRole(blueprint, [1, 2])).toBe('safety-board');
    expect(nextRole(blueprint, [])).toBeUndefined();
  });

  it('has each route either taken or not', () => {
    const routes = blueprint.actions.flatMap(({ id, routes: all = [] }) =>
      all.map((route) => ({ id, routeId: route.id, next: route.nextActionIds })),
    );
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...routes)), fc.boolean(), (taken, hasEnded) => {
        const steps = taken.map(({ id, routeId, next }, at) => stepOf(id, routeId, next, at));
        const walk = walkOf(walked({ steps, hasEnded, current: hasEnded ? [] : [0] }));
        const names = (of: typeof walk.routesTaken) => of.map((each) => `${each.actionId} ${each.routeId}`);
        expect(names(walk.routesTaken)).toEqual(taken.map(({ id, routeId }) => `${id} ${routeId}`));
        const both = [...new Set(names(walk.routesTaken)), ...names(walk.routesNotTaken)];
        expect(both.toSorted()).toEqual(routes.map(({ id, routeId }) => `${id} ${routeId}`).toSorted());
        const open = walk.steps.filter(({ status }) => status === 'Pending' || status === 'Current');
        expect(hasEnded ? open.length : 0).toBe(0);
      }),
    );
  });
});

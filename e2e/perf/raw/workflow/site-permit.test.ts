import { describe, expect, test } from 'vitest';
import { evaluateAction } from '#core/blueprint/execution/action.ts';
import { disclose } from '#core/blueprint/execution/disclose.ts';
import { LogicBudget } from '#core/blueprint/logic/budget.ts';
import { compileLogic } from '#core/blueprint/logic/compile.ts';
import { evaluateLogic } from '#core/blueprint/logic/evaluate.ts';
import { variablesOf } from '#core/blueprint/logic/variables.ts';
import { parseBlueprint } from '#core/blueprint/model/parse.ts';
import { planGroups } from '#core/blueprint/payload/groups.ts';
import { sitePermit } from '../../../harness/workflow.ts';
import { applying, fourSteps } from '../../workflows/permits.ts';
import { actionOf, compileJudges } from './site-permit.ts';

const parsed = parseBlueprint(sitePermit({}));
if (!('blueprint' in parsed)) throw new Error('the definition is malformed');
const { blueprint } = parsed;
const judges = compileJudges();

function compile(value: unknown) {
  const compiled = compileLogic(value);
  if (compiled.kind === 'fault') throw new Error(compiled.message);
  return compiled;
}

const logic = {
  variablesOf: (value: unknown) => variablesOf(compile(value)),
  evaluate: (value: unknown, data: object) => evaluateLogic(compile(value), data, new LogicBudget()),
};

/** What the product makes of an action: its data, the next action, and the readers of each group. */
function evaluate(actionId: number, submission: object) {
  const action = blueprint.actions.find(({ id }) => id === actionId);
  if (action === undefined) throw new Error(`there is no action ${actionId}`);
  const state = { actions: {}, merged: {} };
  const rest = { validate: judges[actionId] ?? (() => []), logic, prefill: {}, state };
  const outcome = evaluateAction({ action, submission: { ...submission }, ...rest });
  if (!('processed' in outcome)) throw new Error(JSON.stringify(outcome.errors));
  const { processed, taken } = outcome;
  const views = disclose(action, processed).map(({ participantId, ...view }) => ({
    address: participantId,
    ...view,
  }));
  const groups = planGroups(views).map(({ recipients, data }) => ({ readers: recipients, data }));
  return { sender: action.sender, data: processed, next: taken?.route.nextActionIds[0], groups };
}

const small = { ...applying.payload, floorAreaM2: 40 };
const hazardous = { ...small, hazardous: true };
const refused = { decision: 'refused', reasonCode: 'R-UNSAFE' };

describe('the site permit of the raw programs', () => {
  test.each([
    ...fourSteps.map(({ actionId, payload }) => [actionId, payload] as const),
    [0, small] as const,
    [0, hazardous] as const,
    [2, refused] as const,
  ])('makes of action %i and %o what the product makes of it', (actionId, payload) => {
    const rule = actionOf(actionId);
    const data = { ...payload, ...rule.calculate(payload) };
    const own = rule.views(data).map((view) => ({ ...view, readers: view.readers.toSorted() }));
    const expected = evaluate(actionId, payload);
    expect([rule.sender, data, rule.next(data)]).toEqual([expected.sender, expected.data, expected.next]);
    const byReader = (one: { readers: readonly string[] }, other: { readers: readonly string[] }) =>
      String(one.readers[0]).localeCompare(String(other.readers[0]));
    expect(own.toSorted(byReader)).toEqual(expected.groups.toSorted(byReader));
  });

  test('seals an application in two groups for three recipients', () => {
    const rule = actionOf(0);
    const views = rule.views({ ...applying.payload, ...rule.calculate(applying.payload) });
    expect([views.length, views.flatMap(({ readers }) => readers).length]).toEqual([2, 3]);
  });

  test('refuses what violates a schema', () => {
    for (const { actionId, payload } of fourSteps) expect(judges[actionId]?.(payload)).toEqual([]);
    expect(judges[0]?.({ ...applying.payload, siteReference: 'ab' })).toHaveLength(1);
    expect(judges[1]?.({ safetyScore: 101 })).toHaveLength(1);
    expect(() => actionOf(4)).toThrow('no action 4');
  });
});

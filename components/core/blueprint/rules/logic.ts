import { compileLogic, type Logic } from '../logic/compile.ts';
import { ALL_DATA, looseComparisons, variablesOf } from '../logic/variables.ts';
import type { Action } from '../model/blueprint.ts';
import { errorAt, type Finding, warningAt } from '../model/finding.ts';
import { propertyNames, schemasAt, typesOf } from '../schemas/properties.ts';
import { dataNames, inAction, type RuleContext, sees } from './context.ts';

interface PlacedLogic {
  readonly location: string;
  readonly value: unknown;
  /** Names of calculations that are evaluated before. */
  readonly calculated: readonly string[];
}

function* logicOf(action: Action, index: number): Generator<PlacedLogic> {
  const { calculations = {}, routes = [], credentialIssuanceConfig: issuance } = action;
  const names = Object.keys(calculations);
  for (const [at, [name, value]] of Object.entries(calculations).entries()) {
    yield { location: inAction(index, 'calculations', name), value, calculated: names.slice(0, at) };
  }
  for (const [at, { condition }] of routes.entries()) {
    if (condition === undefined) continue;
    yield { location: inAction(index, 'routes', at, 'condition'), value: condition, calculated: names };
  }
  const value = issuance?.issuanceCondition;
  if (value === undefined) return;
  yield {
    location: inAction(index, 'credentialIssuanceConfig', 'issuanceCondition'),
    value,
    calculated: names,
  };
}

/** Actions whose data an action reads: those that it requires, or else all that may come before it. */
function priorActions({ actions, predecessors }: RuleContext, action: Action): Action[] {
  const { id, requiredPriorActions = [] } = action;
  if (requiredPriorActions.length > 0)
    return requiredPriorActions.flatMap((prior) => actions.get(prior) ?? []);
  const found = new Set(predecessors.get(id));
  // A set is iterated in the order of insertion, with what is added meanwhile.
  for (const prior of found) for (const before of predecessors.get(prior) ?? []) found.add(before);
  // On its first time an action has no data of its own from before.
  found.delete(id);
  return [...found].flatMap((prior) => actions.get(prior) ?? []);
}

/** Why the sender of an action does not have the value of a variable; undefined when it does. */
function lack(
  variable: string,
  {
    action,
    priors,
    calculated,
  }: { action: Action; priors: readonly Action[]; calculated: readonly string[] },
): string | undefined {
  const names = variable.split('.');
  const [first = '', id = '', ...rest] = names;
  const { sender, dataSchemas = [] } = action;
  if (variable === ALL_DATA) {
    const hidden = priors.find((prior) => !sees(sender, prior, []));
    return (
      hidden && `The logic reads all data, and action ${hidden.id} does not disclose all of them to ${sender}`
    );
  }
  if (calculated.includes(first) || propertyNames(dataSchemas).has(first)) return undefined;
  const isExplicit = first === 'actions' && id !== '';
  const path = isExplicit ? rest : names;
  const providers = isExplicit
    ? priors.filter((prior) => String(prior.id) === id)
    : priors.filter((prior) => dataNames(prior).has(first));
  if (providers.length === 0 && !isExplicit && dataSchemas.length === 0) return undefined;
  if (providers.length === 0)
    return `${JSON.stringify(variable)} is no data of this action or of those before it`;
  const hidden = providers.find((prior) => !sees(sender, prior, path));
  return (
    hidden &&
    `${JSON.stringify(variable)} of action ${hidden.id} is not disclosed to ${sender}, who evaluates this`
  );
}

/** Equality of a variable and a literal of another type than the variable's schema has. */
function* looseEquality(logic: Logic, { dataSchemas = [] }: Action, location: string): Generator<Finding> {
  for (const { variable, literal } of looseComparisons(logic)) {
    const types = schemasAt(dataSchemas, variable.split('.')).flatMap(typesOf);
    const type = literal === null ? 'null' : typeof literal;
    const names = type === 'number' ? ['number', 'integer'] : [type];
    if (types.length === 0 || names.some((name) => types.includes(name))) continue;
    const message = `${JSON.stringify(variable)} is compared with a ${type}, which its schema does not allow; use ===`;
    yield warningAt(location, 'WARN_BP_LOOSE_EQ', message);
  }
}

/** Logic is well-formed, and its variables are known to the sender, who evaluates it. */
export function* logicRules(context: RuleContext): Generator<Finding> {
  for (const [index, action] of context.blueprint.actions.entries()) {
    const priors = priorActions(context, action);
    for (const { location, value, calculated } of logicOf(action, index)) {
      const logic = compileLogic(value);
      if (logic.kind === 'fault') {
        yield errorAt(`${location}${logic.location}`, 'VAL_BP_009', logic.message);
        continue;
      }
      for (const variable of variablesOf(logic)) {
        const reason = lack(variable, { action, priors, calculated });
        if (reason !== undefined) yield errorAt(location, 'VAL_BP_020', reason);
      }
      yield* looseEquality(logic, action, location);
    }
    yield* calculationNames(action, index);
  }
}

/** A calculation would overwrite a property of the same name. */
function* calculationNames(
  { calculations = {}, dataSchemas = [] }: Action,
  index: number,
): Generator<Finding> {
  const properties = propertyNames(dataSchemas);
  for (const name of Object.keys(calculations)) {
    if (!properties.has(name)) continue;
    const message = 'The calculation has the name of a property of the payload; give it another';
    yield errorAt(inAction(index, 'calculations', name), 'VAL_BP_FIELD', message);
  }
}

import type { Action } from '../model/blueprint.ts';
import { errorAt, type Finding } from '../model/finding.ts';
import { EVERYTHING, findNames } from '../model/pointers.ts';
import type { JsonSchema } from '../model/values.ts';
import { passesList, propertyNames } from '../schemas/properties.ts';
import { inAction, own, type RuleContext, sees, startingActions } from './context.ts';

interface PlacedPointer {
  readonly location: string;
  readonly pointer: string;
  /** Schemas of the data that it points into; absent when they are not known. */
  readonly schemas?: readonly JsonSchema[];
}

function* pointersOf(action: Action, index: number): Generator<PlacedPointer> {
  const { dataSchemas: schemas = [], disclosures, routes = [], credentialIssuanceConfig: issuance } = action;
  for (const [at, { dataPointers }] of disclosures.entries()) {
    for (const [position, pointer] of dataPointers.entries()) {
      if (pointer === EVERYTHING || pointer === `#${EVERYTHING}`) continue;
      yield { location: inAction(index, 'disclosures', at, 'dataPointers', position), pointer, schemas };
    }
  }
  for (const [at, { outputMapping = {}, 'x-decision-notice': notice }] of routes.entries()) {
    for (const [source, target] of Object.entries(outputMapping)) {
      const location = inAction(index, 'routes', at, 'outputMapping', source);
      yield { location, pointer: source };
      yield { location, pointer: target };
    }
    const field = notice?.reasonCodeField;
    const location = inAction(index, 'routes', at, 'x-decision-notice', 'reasonCodeField');
    if (field !== undefined) yield { location, pointer: field, schemas };
  }
  if (issuance === undefined) return;
  for (const [at, { sourceField }] of issuance.claimMappings.entries()) {
    const location = inAction(index, 'credentialIssuanceConfig', 'claimMappings', at, 'sourceField');
    yield { location, pointer: sourceField };
  }
  const holder = issuance.holderKeySourceField;
  const location = inAction(index, 'credentialIssuanceConfig', 'holderKeySourceField');
  if (holder !== undefined) yield { location, pointer: holder };
}

function* allPointers(context: RuleContext): Generator<PlacedPointer> {
  const { blueprint } = context;
  for (const [index, action] of blueprint.actions.entries()) yield* pointersOf(action, index);
  const schemas = startingActions(context).flatMap(({ dataSchemas = [] }) => dataSchemas);
  for (const [at, pointer] of (blueprint.instanceReference?.fields ?? []).entries()) {
    yield { location: `/instanceReference/fields/${at}`, pointer, schemas };
  }
}

/** Pointers are JSON Pointers, and none leads into a list. */
export function* pointerForms(context: RuleContext): Generator<Finding> {
  for (const { location, pointer, schemas = [] } of allPointers(context)) {
    const names = findNames(pointer);
    if (names === undefined || names.length === 0) {
      const message =
        'This is no JSON Pointer to a member: write /name, with ~1 for a slash and ~0 for a tilde';
      yield errorAt(location, 'VAL_BP_016', message);
    } else if (passesList(schemas, names)) {
      yield errorAt(location, 'VAL_BP_017', 'The pointer leads into a list; point at the list as a whole');
    }
  }
}

/** What an output mapping reads. */
const SOURCES: ReadonlySet<string> = new Set(['payload', 'calculations', 'haip']);

function isProvided(
  { dataSchemas = [], calculations = {} }: Action,
  [document = '', name = '']: readonly string[],
) {
  if (document === 'payload') return propertyNames(dataSchemas).has(name);
  return document === 'calculations' ? own(calculations, name) !== undefined : SOURCES.has(document);
}

interface Mapping {
  readonly location: string;
  readonly source: readonly string[];
  readonly target: readonly string[];
}

function* judgeMapping(action: Action, next: readonly Action[], mapping: Mapping): Generator<Finding> {
  const { location, source, target } = mapping;
  if (!isProvided(action, source)) {
    const message = 'The source is no property of the payload and no calculation of this action';
    yield errorAt(location, 'VAL_BP_011', `${message}; begin with /payload, /calculations or /haip`);
    return;
  }
  const [property = ''] = target;
  if (!next.some(({ dataSchemas = [] }) => propertyNames(dataSchemas).has(property))) {
    yield errorAt(location, 'VAL_BP_011', `No next action declares ${JSON.stringify(property)}`);
  }
  const unseeing = next.find(({ sender }) => source[0] !== 'haip' && !sees(sender, action, source.slice(1)));
  if (unseeing === undefined) return;
  const message = `The source is not disclosed to ${unseeing.sender}, the sender of action ${unseeing.id}`;
  yield errorAt(location, 'VAL_BP_023', message);
}

/** Output mappings read what the action provides and write what a next action declares. */
export function* outputMappings({ blueprint, actions }: RuleContext): Generator<Finding> {
  for (const [index, action] of blueprint.actions.entries()) {
    for (const [at, { outputMapping = {}, nextActionIds }] of (action.routes ?? []).entries()) {
      const next = nextActionIds.flatMap((id) => actions.get(id) ?? []);
      for (const [from, to] of Object.entries(outputMapping)) {
        const location = inAction(index, 'routes', at, 'outputMapping', from);
        const [source, target] = [findNames(from), findNames(to)];
        if (source === undefined || target === undefined) continue;
        yield* judgeMapping(action, next, { location, source, target });
      }
    }
  }
}

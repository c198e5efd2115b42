import { type Action, LEGACY_ACTION_MEMBERS } from '../model/blueprint.ts';
import { errorAt, type Finding, warningAt } from '../model/finding.ts';
import { isAddressForm } from '../steps/routing.ts';
import { inAction, own, type RuleContext } from './context.ts';

/** Locations of the values that are there a second time. */
function repeated<T>(values: readonly T[]): readonly number[] {
  return values.flatMap((value, index) => (values.indexOf(value) === index ? [] : [index]));
}

/** Ids are unique: of participants, of actions, of the routes of an action, and the targets of a route. */
export function* uniqueIds({ blueprint: { participants, actions } }: RuleContext): Generator<Finding> {
  const twice = (location: string) =>
    errorAt(location, 'VAL_BP_004', 'This id is there twice; give each its own');
  for (const index of repeated(participants.map(({ id }) => id))) yield twice(`/participants/${index}/id`);
  for (const index of repeated(actions.map(({ id }) => id))) yield twice(inAction(index, 'id'));
  for (const [index, { routes = [] }] of actions.entries()) {
    for (const at of repeated(routes.map(({ id }) => id))) yield twice(inAction(index, 'routes', at, 'id'));
    for (const [at, { nextActionIds }] of routes.entries()) {
      for (const target of repeated(nextActionIds)) {
        yield twice(inAction(index, 'routes', at, 'nextActionIds', target));
      }
    }
  }
}

/** Participants that are named exist. */
export function* knownParticipants({ blueprint, participantIds }: RuleContext): Generator<Finding> {
  for (const [index, { sender, disclosures, rejectionConfig }] of blueprint.actions.entries()) {
    const unknown = (id: string) => `No participant has the id ${JSON.stringify(id)}`;
    if (!participantIds.has(sender)) yield errorAt(inAction(index, 'sender'), 'VAL_BP_005', unknown(sender));
    const target = rejectionConfig?.targetParticipantId;
    if (target !== undefined && !participantIds.has(target)) {
      yield errorAt(inAction(index, 'rejectionConfig', 'targetParticipantId'), 'VAL_BP_005', unknown(target));
    }
    for (const [at, { participantAddress: id }] of disclosures.entries()) {
      if (participantIds.has(id)) continue;
      yield errorAt(inAction(index, 'disclosures', at, 'participantAddress'), 'VAL_BP_018', unknown(id));
    }
  }
}

interface NamedAction {
  readonly location: string;
  readonly id: number | undefined;
}

function* namedActions(action: Action, index: number): Generator<NamedAction> {
  const { routes = [], requiredPriorActions = [], rejectionConfig } = action;
  for (const [at, { nextActionIds }] of routes.entries()) {
    for (const [target, id] of nextActionIds.entries()) {
      yield { location: inAction(index, 'routes', at, 'nextActionIds', target), id };
    }
  }
  for (const [at, id] of requiredPriorActions.entries()) {
    yield { location: inAction(index, 'requiredPriorActions', at), id };
  }
  if (rejectionConfig === undefined) return;
  const { targetActionId: id, isTerminal } = rejectionConfig;
  const location = inAction(index, 'rejectionConfig', 'targetActionId');
  if (id !== undefined || isTerminal !== true) yield { location, id };
}

/** Actions that are named exist. */
export function* knownActions({ blueprint, actions }: RuleContext): Generator<Finding> {
  for (const [index, action] of blueprint.actions.entries()) {
    for (const { location, id } of namedActions(action, index)) {
      if (id === undefined) {
        const message = 'A rejection that does not end the instance needs the action that it leads back to';
        yield errorAt(location, 'VAL_BP_007', message);
      } else if (!actions.has(id)) yield errorAt(location, 'VAL_BP_007', `No action has the id ${id}`);
    }
  }
}

/** What participants may be, so far. */
export function* participantForms({ blueprint: { participants } }: RuleContext): Generator<Finding> {
  for (const [index, { walletAddress, useStealthAddress }] of participants.entries()) {
    if (useStealthAddress === true) {
      const message = 'Stealth addresses are not supported; leave useStealthAddress out';
      yield errorAt(`/participants/${index}/useStealthAddress`, 'VAL_BP_STEALTH_UNSUPPORTED', message);
    }
    if (walletAddress !== undefined && !isAddressForm(walletAddress)) {
      const message = 'This is no wallet address; leave it out to let the first who takes the role keep it';
      yield errorAt(`/participants/${index}/walletAddress`, 'VAL_BP_FIELD', message);
    }
  }
}

/** Members of the earlier dialect have no effect. */
export function* legacyMembers({ blueprint: { actions } }: RuleContext): Generator<Finding> {
  for (const [index, action] of actions.entries()) {
    const names: readonly string[] = LEGACY_ACTION_MEMBERS.filter((name) => own(action, name) !== undefined);
    for (const name of names) {
      const message = `Member ${name} is of an earlier dialect and has no effect; use routes and disclosures`;
      yield warningAt(inAction(index, name), 'WARN_BP_LEGACY_FIELD', message);
    }
    if (action.form?.schema === undefined) continue;
    const message = 'A schema of a form has no effect; only dataSchemas validate';
    yield warningAt(inAction(index, 'form', 'schema'), 'WARN_BP_LEGACY_FIELD', message);
  }
}

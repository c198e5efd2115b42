import { evaluateAction } from '#core/blueprint/execution/action.ts';
import { disclose } from '#core/blueprint/execution/disclose.ts';
import { reasonCodeOf } from '#core/blueprint/execution/notice.ts';
import type { Action } from '#core/blueprint/model/blueprint.ts';
import type { WalletDisclosure } from '#core/blueprint/payload/groups.ts';
import { EVERYTHING } from '#core/blueprint/pointer.ts';
import { advance, type Step } from '#core/blueprint/steps/advance.ts';
import type { Routing } from '#core/blueprint/steps/routing.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { type FileAt, judgeFiles } from '../files/claims.ts';
import type { StateDeps } from '../instances/accumulated-state.ts';
import { getAction, type PinnedDefinition, rejectionTargets } from '../instances/definitions.ts';
import { readEarlierData } from '../instances/earlier-data.ts';
import { blockersOf, type Instance, openActions, walletsOf } from '../instances/instance.ts';
import type { OperationInput, StepTask } from '../operations/operation.ts';
import { payloadJudge, payloadSchemas, rejectionJudge } from './compiled.ts';

export interface EvaluateDeps extends StateDeps {
  readonly db: Pick<Database<BlueprintDatabase>, 'read'>;
  readonly clock: Clock;
}

/** A step as it follows from an input and the state of its instance. */
export interface EvaluatedStep {
  readonly pinned: PinnedDefinition;
  readonly routing: Routing;
  /** Ledger timestamp of the transaction. */
  readonly createdAt: string;
  readonly previousTxId: string;
  /** All of the step's data: payload and calculations, or the rejection. */
  readonly data: JsonObject;
  readonly calculations: JsonObject;
  /** Files that the submitted data refers to. */
  readonly files: readonly FileAt[];
  /** What each wallet may read; the sender's first. */
  readonly disclosures: readonly WalletDisclosure[];
  /** Codes of what was left out. */
  readonly warnings: readonly string[];
}

/** A step that is asked for, with the instance that it is one of. */
export interface Situation {
  readonly task: StepTask;
  readonly instance: Instance;
  readonly pinned: PinnedDefinition;
}

const unbound = 'recipient-unbound';

/**
 * Judges whether the action can be taken now, and by this wallet.
 * @throws AppError not_found ACTION_NOT_FOUND, conflict INSTANCE_TERMINAL, ACTION_NOT_CURRENT, ACTION_BLOCKED,
 * REJECTION_NOT_ALLOWED, forbidden SENDER_NOT_PARTICIPANT
 */
function judgeTurn({ task, instance, pinned }: Situation, nowMs: number): Action {
  const action = getAction(pinned, task.actionId);
  if (instance.state === 'Completed' || instance.state === 'Failed') throw refusal('INSTANCE_TERMINAL');
  const open = openActions(instance, pinned.workflow, nowMs);
  const isCurrent = open.some(({ actionId }) => actionId === task.actionId);
  if (!isCurrent) throw refusal('ACTION_NOT_CURRENT');
  const waitingFor = blockersOf(instance, pinned.workflow, task.actionId, nowMs);
  if (waitingFor.length > 0) throw refusal('ACTION_BLOCKED', { details: { waitingFor } });
  const bound = walletsOf(instance, pinned.workflow).get(action.sender);
  if (bound !== undefined && bound !== task.wallet) throw refusal('SENDER_NOT_PARTICIPANT');
  if (task.kind === 'Rejection' && action.rejectionConfig === undefined)
    throw refusal('REJECTION_NOT_ALLOWED');
  return action;
}

/**
 * Evaluates a step in the order of specification document 3, section 4: whether it can be taken, the earlier data that
 * its sender reads, payload, calculations, route, disclosures.
 * @param authority a delegated token of the sender
 * @throws AppError what judgeTurn throws, unprocessable STATE_INCOMPLETE, PAYLOAD_INVALID, CALC_NOT_FINITE,
 * LOGIC_BUDGET_EXCEEDED, NO_ROUTE, invalid REJECTION_REASON_REQUIRED
 */
export async function evaluateStep(
  deps: EvaluateDeps,
  situation: Situation,
  input: OperationInput,
  authority: () => Promise<string>,
): Promise<EvaluatedStep> {
  const { task, instance, pinned } = situation;
  const createdAt = formatLedgerTimestamp(deps.clock.nowMicros());
  const action = judgeTurn(situation, deps.clock.nowMs());
  const made =
    task.kind === 'Rejection'
      ? reject(situation, action, input)
      : await take(deps, situation, action, { input, authority });
  const step: Step = {
    instanceId: instance.instanceId,
    pin: instance.pin,
    actionId: action.id,
    sender: task.wallet,
    createdAt,
    ...made.step,
    ...(instance.routing === undefined && { boundRoles: boundRoles(situation, action) }),
  };
  const advanced = advance(pinned.workflow, instance.routing, step);
  if ('violations' in advanced) throw refusal('ACTION_NOT_CURRENT', { violations: advanced.violations });
  const { routing } = advanced;
  return {
    pinned,
    routing,
    createdAt,
    previousTxId: instance.lastTxId ?? instance.pin,
    data: made.data,
    calculations: made.calculations,
    files: made.files,
    ...addressed(situation, made, routing),
  };
}

/** What an action or a rejection makes, before it is addressed to wallets. */
interface Made {
  readonly step: Pick<Step, 'routeId' | 'reasonCode' | 'isRejection'>;
  readonly data: JsonObject;
  readonly calculations: JsonObject;
  readonly files: readonly FileAt[];
  readonly views: readonly {
    readonly participantId: string;
    readonly data: JsonObject;
    readonly pointers: readonly string[];
  }[];
}

interface Acting {
  readonly input: OperationInput;
  readonly authority: () => Promise<string>;
}

async function take(
  deps: EvaluateDeps,
  { task, instance, pinned }: Situation,
  action: Action,
  { input, authority }: Acting,
): Promise<Made> {
  const viewer = { wallets: [task.wallet], authority };
  const earlier = await readEarlierData(deps, { instance, pinned }, action, viewer);
  const outcome = evaluateAction({
    action,
    validate: payloadJudge(pinned, action.id),
    logic: pinned.logic.begin(),
    submission: input.data,
    ...earlier,
  });
  if (!('processed' in outcome)) throw payloadInvalid(outcome.errors);
  const { processed, calculations, taken } = outcome;
  // Files that earlier steps hand on are kept already.
  const files = judgeFiles(payloadSchemas(pinned, action.id), input.data);
  return {
    step: {
      routeId: taken?.route.id,
      reasonCode: taken === undefined ? undefined : reasonCodeOf(taken.route, processed),
    },
    data: processed,
    calculations,
    files,
    views: disclose(action, processed),
  };
}

function payloadInvalid(errors: readonly object[]) {
  return refusal('PAYLOAD_INVALID', { details: { errors: [...errors] } });
}

function reject({ pinned }: Situation, action: Action, input: OperationInput): Made {
  const config = action.rejectionConfig;
  const { reason, fieldErrors, data: given } = input;
  const isReasonRequired = config?.requireReason ?? true;
  if (isReasonRequired && (reason === undefined || reason.trim() === ''))
    throw refusal('REJECTION_REASON_REQUIRED');
  const errors = rejectionJudge(pinned, action.id)(given);
  if (errors.length > 0) throw payloadInvalid(errors);
  const data = {
    ...(reason !== undefined && { reason }),
    ...(fieldErrors !== undefined && { fieldErrors }),
    ...(Object.keys(given).length > 0 && { data: given }),
  };
  const readers = [action.sender, ...rejectionTargets(pinned, action)];
  const views = [...new Set(readers)].map((participantId) => ({
    participantId,
    data,
    pointers: [EVERYTHING],
  }));
  return { step: { isRejection: true }, data, calculations: {}, files: [], views };
}

/** Wallets of open participants that were given when the instance was created. */
function boundRoles({ instance, pinned }: Situation, action: Action): Record<string, string> {
  const given = Object.entries(instance.start?.participantWallets ?? {});
  return Object.fromEntries(given.filter(([id]) => id !== action.sender && isOpen(pinned, id)));
}

function isOpen({ workflow }: PinnedDefinition, participant: string): boolean {
  return workflow.participants.has(participant) && workflow.participants.get(participant) === undefined;
}

/** The views by wallet; a participant without a wallet reads nothing. */
function addressed(
  { instance, pinned }: Situation,
  { views }: Made,
  routing: Routing,
): Pick<EvaluatedStep, 'disclosures' | 'warnings'> {
  const wallets = walletsOf({ routing, start: instance.start }, pinned.workflow);
  const disclosures: WalletDisclosure[] = [];
  const warnings = new Set<string>();
  for (const { participantId, data, pointers } of views) {
    const address = wallets.get(participantId);
    if (address === undefined) warnings.add(unbound);
    else disclosures.push({ address, data, pointers });
  }
  return { disclosures, warnings: [...warnings] };
}

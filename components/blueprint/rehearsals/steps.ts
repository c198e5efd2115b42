import type { JsonObject } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import { type SubmitDeps, submitStep } from '../actions/submit.ts';
import type { OperationFailure } from '../database/operation-tables.ts';
import { refusal, storedRefusal } from '../errors.ts';
import { openActions } from '../instances/instance.ts';
import { findInstance, listSteps } from '../instances/store.ts';
import { end, settle } from './ending.ts';
import type { StartDeps } from './start.ts';
import { addNote, findRehearsal, type Rehearsal, type Stage, storeRole, touch } from './store.ts';
import { nextRole, type Walk, walkOf } from './walk.ts';

export interface StepDeps extends SubmitDeps, StartDeps {
  readonly db: StartDeps['db'];
  readonly index: StartDeps['index'];
  readonly ledger: SubmitDeps['ledger'];
  readonly definitions: SubmitDeps['definitions'];
  readonly clock: StartDeps['clock'];
  /** How long a step waits for its seal, milliseconds. */
  readonly stepWaitMs: number;
}

/** A rehearsal with what its steps showed. */
export interface Rehearsed {
  readonly rehearsal: Rehearsal;
  readonly stage: Stage;
  readonly walk: Walk;
  readonly actingRole: string;
  readonly current: readonly number[];
  /** Sealed steps. */
  readonly stepCount: number;
}

/** A step as the acting role takes it. */
interface StepRequest {
  readonly actionId: number;
  readonly payload: JsonObject;
  /** Rejects what the action decides on. */
  readonly rejection?:
    | {
        readonly reason?: string | undefined;
        readonly fieldErrors?: Readonly<Record<string, string>> | undefined;
      }
    | undefined;
}

/** Faults of a definition that data brings to light. */
const definitionFaults: ReadonlySet<string> = new Set([
  'NO_ROUTE',
  'CALC_CYCLE',
  'CALC_NOT_FINITE',
  'LOGIC_BUDGET_EXCEEDED',
  'SCHEMA_REFUSED',
  'STATE_INCOMPLETE',
  'ROUTING_TOO_LARGE',
]);

/** Another step was first, or the instance has moved on. */
const notCurrent: ReadonlySet<string> = new Set([
  'ACTION_NOT_FOUND',
  'ACTION_NOT_CURRENT',
  'ACTION_BLOCKED',
  'INSTANCE_TERMINAL',
  'VAL_CHAIN_FORK',
]);

/** The rehearsal as it is now; one whose instance has ended ends. */
export async function lookAt(deps: StepDeps, found: Rehearsal): Promise<Rehearsed> {
  const rehearsal = await settle(deps, found);
  const { stage, status, notes } = rehearsal;
  if (stage === undefined) throw refusal('REHEARSAL_NOT_FOUND');
  const { registerId, instanceId, pin } = stage;
  const { blueprint, workflow } = await deps.definitions.get(registerId, pin);
  const steps = await listSteps(deps.db.read, registerId, instanceId);
  const instance = await findInstance(deps.db.read, registerId, instanceId, new Date(deps.clock.nowMs()));
  if (instance === undefined) throw refusal('REHEARSAL_NOT_FOUND');
  const hasEnded = status !== 'InProgress';
  const current = hasEnded
    ? []
    : openActions(instance, workflow, deps.clock.nowMs()).map(({ actionId }) => actionId);
  const last = steps.at(-1)?.actionId;
  const lastSender = blueprint.actions.find(({ id }) => id === last)?.sender;
  const isChosen = rehearsal.actingSince >= steps.length ? rehearsal.actingRole : undefined;
  const first = blueprint.participants[0]?.id ?? '';
  return {
    rehearsal,
    stage,
    walk: walkOf({ blueprint, steps, current, hasEnded, notes }),
    actingRole: isChosen ?? nextRole(blueprint, current) ?? lastSender ?? first,
    current,
    stepCount: steps.length,
  };
}

/**
 * Chooses the role that acts, until the next step is sealed.
 * @throws AppError unprocessable REHEARSAL_ENDED, ROLE_UNKNOWN
 */
export async function actAs(deps: StepDeps, found: Rehearsal, role: string): Promise<Rehearsed> {
  const { rehearsal, stage, stepCount } = await lookAt(deps, found);
  assertUnderWay(rehearsal);
  if (!Object.hasOwn(stage.wallets, role)) throw refusal('ROLE_UNKNOWN');
  const chosen = { role, since: stepCount, at: new Date(deps.clock.nowMs()) };
  const isStored = await deps.db.transact((tx) => storeRole(tx, rehearsal.id, chosen));
  if (!isStored) throw refusal('REHEARSAL_ENDED');
  return again(deps, rehearsal);
}

/**
 * Takes a step as the acting role: it is evaluated, signed by the wallet of the role, judged and sealed like other steps. A
 * fault of the definition ends the rehearsal; what is wrong with the payload is refused, and noted.
 * @throws AppError unprocessable REHEARSAL_ENDED, STEP_NOT_CURRENT, ROLE_MISMATCH, PAYLOAD_INVALID
 */
export async function takeStep(deps: StepDeps, found: Rehearsal, request: StepRequest): Promise<Rehearsed> {
  const { rehearsal, stage, actingRole, current, walk } = await lookAt(deps, found);
  assertUnderWay(rehearsal);
  const { actionId } = request;
  if (!current.includes(actionId)) throw refusal('STEP_NOT_CURRENT');
  const sender = walk.steps.find((step) => step.actionId === actionId)?.actingRole;
  if (sender !== actingRole) throw refusal('ROLE_MISMATCH');
  const failure = await submit(deps, { stage, role: actingRole }, request).catch((error: unknown) =>
    judge(deps, rehearsal, error),
  );
  if (failure !== undefined) await fail(deps, rehearsal, failure);
  else await deps.db.transact((tx) => touch(tx, rehearsal.id, new Date(deps.clock.nowMs())));
  return again(deps, rehearsal);
}

interface Acting {
  readonly stage: Stage;
  readonly role: string;
}

type Failure = Pick<OperationFailure, 'code' | 'message'>;

/** Submits a step and waits for its seal; resolves to what shut it out. */
async function submit(
  deps: StepDeps,
  { stage, role }: Acting,
  { actionId, payload, rejection }: StepRequest,
): Promise<Failure | undefined> {
  const self = await deps.self();
  const wallet = stage.wallets[role];
  const own: SubmitDeps = {
    ...deps,
    listOwn: async () => (wallet === undefined ? [] : [wallet]),
    // The wallets of the roles are this service's own: it signs with its own token.
    delegations: { exchange: async (token) => ({ token, expiresAtMs: self.caller.expiresAtMs }) },
  };
  const step = {
    kind: rejection === undefined ? 'Action' : 'Rejection',
    instanceId: stage.instanceId,
    registerId: stage.registerId,
    blueprintId: undefined,
    actionId,
    wallet,
    input: { data: payload, externalRecipientKeys: {}, ...rejection },
  } as const;
  const options = { idempotencyKey: undefined, delegationToken: undefined };
  const { operation } = await submitStep(own, self, step, options);
  const ended = await deps.runner.waitForEnd(operation.id, deps.stepWaitMs);
  return ended?.failure;
}

/** What a refused step was refused for; resolves to a fault of the definition. */
async function judge(deps: StepDeps, rehearsal: Rehearsal, error: unknown): Promise<Failure> {
  if (!isAppError(error)) throw error;
  const { code, message } = error;
  if (definitionFaults.has(code)) return { code, message };
  if (notCurrent.has(code)) throw refusal('STEP_NOT_CURRENT', { cause: error });
  if (code === 'PAYLOAD_INVALID') await note(deps, rehearsal, { code, message });
  throw error;
}

/** A step that was shut out: by a fault of the definition, which fails the rehearsal, or by something that passes. */
async function fail(deps: StepDeps, rehearsal: Rehearsal, failure: Failure): Promise<void> {
  const { code, message } = failure;
  await note(deps, rehearsal, failure);
  if (notCurrent.has(code)) throw refusal('STEP_NOT_CURRENT');
  const isOfDefinition =
    definitionFaults.has(code) || code.startsWith('VAL_') || code === 'SUBMISSION_REFUSED';
  if (!isOfDefinition) throw storedRefusal(code, message);
  await end(deps, rehearsal, 'Failed');
}

async function note(deps: StepDeps, { id }: Rehearsal, { code, message }: Failure): Promise<void> {
  const at = new Date(deps.clock.nowMs()).toISOString();
  await deps.db.transact((tx) => addNote(tx, id, { at, kind: 'error', message: `${code}: ${message}` }));
}

/** Abandons a rehearsal; one that has ended stays as it ended. */
export async function discard(deps: StepDeps, found: Rehearsal): Promise<void> {
  const rehearsal = await settle(deps, found);
  await end(deps, rehearsal, 'Abandoned');
}

function assertUnderWay({ status }: Rehearsal): void {
  if (status !== 'InProgress') throw refusal('REHEARSAL_ENDED');
}

async function again(deps: StepDeps, { id }: Rehearsal): Promise<Rehearsed> {
  const rehearsal = await findRehearsal(deps.db.read, id);
  if (rehearsal === undefined) throw refusal('REHEARSAL_NOT_FOUND');
  return lookAt(deps, rehearsal);
}

import { randomUUIDv7 } from 'node:crypto';
import type { JsonObject } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import { claimKey, findAnswer } from '#kit/db/idempotency.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { invalid, refusal } from '../errors.ts';
import { claimFiles } from '../files/claims.ts';
import { type InlineFile, placeInlineFiles } from '../files/inline.ts';
import type { NewChunk } from '../files/uploads/store.ts';
import { type AuthorityDeps, delegationOf } from '../instances/authority.ts';
import { type CreateDeps, choosePublication } from '../instances/create.ts';
import { getAction } from '../instances/definitions.ts';
import { currentActions, type Instance, walletsOf } from '../instances/instance.ts';
import { findInstances, insertStart, reserveStart } from '../instances/store.ts';
import { creatorOf, type InstanceView, type ViewDeps, viewInstance, viewOf } from '../instances/view.ts';
import type { LeasedOperation, OperationInput, StepTask } from '../operations/operation.ts';
import type { OperationRunner } from '../operations/runner.ts';
import type { OperationSeal } from '../operations/sealing.ts';
import { findOperation, insertOperation } from '../operations/store.ts';
import { payloadSchemas } from './compiled.ts';
import type { Situation } from './evaluate.ts';
import { type PipelineDeps, type PreparedStep, prepareStep } from './pipeline.ts';

export interface SubmitDeps extends PipelineDeps, ViewDeps, AuthorityDeps, Pick<CreateDeps, 'index'> {
  readonly db: Database<BlueprintDatabase>;
  readonly definitions: PipelineDeps['definitions'] & ViewDeps['definitions'];
  readonly seal: OperationSeal;
  readonly runner: OperationRunner<PreparedStep>;
  /** Encrypted bytes of files that an organisation may keep here. */
  readonly fileQuotaBytes: number;
}

/** A step that a caller asks for. */
export interface StepRequest {
  readonly kind: StepTask['kind'];
  /** Absent: a new instance begins. */
  readonly instanceId: string | undefined;
  /** Needed for a new instance; else it must be the instance's. */
  readonly registerId: string | undefined;
  readonly blueprintId: string | undefined;
  readonly actionId: number;
  /** Address of the sender; the caller's wallet that is bound to the role when absent. */
  readonly wallet: string | undefined;
  readonly branchKey?: string | undefined;
  /** The caller's belief of the instance's last transaction. */
  readonly previousTxId?: string | undefined;
  readonly input: OperationInput;
  /** Files whose references the payload gets. */
  readonly files?: readonly InlineFile[];
}

export interface SubmitOptions {
  readonly idempotencyKey: string | undefined;
  readonly delegationToken: string | undefined;
}

/** An operation that was made, or the one that was made for the same key before. */
interface Submitted {
  readonly operation: LeasedOperation;
  /** Payloads of the register are not encrypted. */
  readonly isDevelopment: boolean;
}

/**
 * Judges a step, makes the operation that carries it out, and starts it. Whatever is wrong with the step is refused
 * before there is an operation.
 * @throws AppError what prepareStep throws, not_found INSTANCE_NOT_FOUND, forbidden INSTANCE_ACCESS_DENIED,
 * WALLET_NOT_OWNED, DELEGATION_INVALID, unprocessable VAL_BP_VERSION_001, conflict STALE_PREDECESSOR, invalid
 * INSTANCE_REQUIRED
 */
export async function submitStep(
  deps: SubmitDeps,
  subject: Subject,
  request: StepRequest,
  options: SubmitOptions,
): Promise<Submitted> {
  const nowMs = deps.clock.nowMs();
  const { caller } = subject;
  const scope = ['submit-step', creatorOf(caller), request.instanceId ?? ''];
  const repeated = { key: options.idempotencyKey, scope, body: request };
  const earlier = await findAnswer(deps.db.read, repeated, nowMs);
  if (earlier !== undefined) return submittedOf(deps, earlier);
  const { situation, isNew } = await findSituation(deps, subject, request);
  assertBeliefs(situation, request);
  const delegation = await delegationOf(deps, subject, options.delegationToken);
  const { input, chunks } = withFiles(situation, subject, request);
  const prepared = await prepareStep(deps, situation, input, async () => delegation.token);
  const id = randomUUIDv7();
  const { instance, pinned, task } = situation;
  const known = await deps.db.transact(async (tx) => {
    const before = await claimKey(tx, repeated, { answer: id, nowMs });
    if (before !== undefined) return before;
    if (isNew) await insertStart(tx, startOf(situation, subject));
    if (instance.routing === undefined && instance.start !== undefined) {
      const instead = await failedStart(deps, instance.start.startOperation);
      const isReserved = await reserveStart(tx, instance.instanceId, { id, instead });
      if (!isReserved)
        throw refusal('ACTION_NOT_CURRENT', { message: 'the first action of the instance is under way' });
    }
    const operation = {
      ...task,
      id,
      blueprintId: instance.blueprintId,
      actionTitle: getAction(pinned, task.actionId).title,
      owner: creatorOf(caller),
      organizationId: caller.organizationId,
      sealedInput: deps.seal.seal(id, 'input', input),
      sealedDelegation: deps.seal.seal(id, 'delegation', { token: delegation.token }),
      delegationExpiresAt: new Date(delegation.expiresAtMs),
    };
    await insertOperation(tx, operation, deps.runner.lease());
    const limits = { now: new Date(nowMs), quotaBytes: deps.fileQuotaBytes };
    await claimFiles(tx, { operationId: id, ...task }, prepared.step.files, { chunks, limits });
    return undefined;
  });
  if (known !== undefined) return submittedOf(deps, known);
  const operation = await getOperation(deps, id);
  deps.runner.start(operation, prepared);
  return { operation, isDevelopment: prepared.register.devMode };
}

/** The input with the references of the files that a request carries, and their chunks. */
function withFiles(
  { pinned, task }: Situation,
  { caller }: Subject,
  { kind, input, files = [] }: StepRequest,
): { readonly input: OperationInput; readonly chunks: readonly NewChunk[] } {
  if (kind === 'Rejection') return { input, chunks: [] };
  const { registerId, wallet } = task;
  const owner = { registerId, wallet, quotaOwner: caller.organizationId ?? creatorOf(caller) };
  const schemas = payloadSchemas(pinned, task.actionId);
  const { payload, chunks } = placeInlineFiles(owner, schemas, { payload: input.data, files });
  return { input: { ...input, data: payload }, chunks };
}

async function submittedOf(deps: SubmitDeps, id: string): Promise<Submitted> {
  const operation = await getOperation(deps, id);
  const register = await deps.ledger.findRegister(operation.registerId);
  return { operation, isDevelopment: register?.devMode === true };
}

async function getOperation({ db }: Pick<SubmitDeps, 'db'>, id: string): Promise<LeasedOperation> {
  const operation = await findOperation(db.read, id);
  if (operation === undefined) throw refusal('OPERATION_NOT_FOUND');
  return operation;
}

interface FoundSituation {
  readonly situation: Situation;
  /** The instance begins with this step. */
  readonly isNew: boolean;
}

async function findSituation(
  deps: SubmitDeps,
  subject: Subject,
  request: StepRequest,
): Promise<FoundSituation> {
  const found =
    request.instanceId === undefined
      ? await beginInstance(deps, subject, request)
      : await findView(deps, subject, request, request.instanceId);
  const { instance, pinned, wallets } = found;
  if (pinned === undefined) throw refusal('VAL_BP_VERSION_001');
  if (request.blueprintId !== undefined && request.blueprintId !== instance.blueprintId)
    throw invalid('blueprintId is not that of the instance');
  const { kind, actionId } = request;
  const wallet = request.wallet ?? boundWallet(found, actionId);
  if (wallet === undefined || !wallets.includes(wallet)) throw refusal('WALLET_NOT_OWNED');
  const { registerId, instanceId } = instance;
  const situation = { task: { kind, registerId, instanceId, actionId, wallet }, instance, pinned };
  return { situation, isNew: request.instanceId === undefined };
}

type Found = Pick<InstanceView, 'instance' | 'pinned' | 'wallets'>;

/** The wallet that takes an action, when it is the caller's; else their first one. */
function boundWallet({ instance, pinned, wallets }: Found, actionId: number): string | undefined {
  const sender = pinned?.workflow.actions.get(actionId)?.sender;
  if (pinned === undefined || sender === undefined) return wallets[0];
  const bound = walletsOf(instance, pinned.workflow).get(sender);
  return bound !== undefined && wallets.includes(bound) ? bound : wallets[0];
}

/** The instance of an id, for those who may read it and for those who may take an open role. */
async function findView(
  deps: SubmitDeps,
  subject: Subject,
  { registerId, actionId }: StepRequest,
  instanceId: string,
): Promise<Found> {
  const all = await findInstances(deps.db.read, instanceId, new Date(deps.clock.nowMs()));
  const candidates = all.filter((each) => registerId === undefined || each.registerId === registerId);
  try {
    return await viewInstance(deps, candidates, subject);
  } catch (error) {
    if (!isAppError(error, 'forbidden')) throw error;
    const wallets = await deps.listOwn(subject.bearer);
    for (const instance of candidates) {
      const view = await viewOf(deps, instance, wallets);
      if (isOpenFor(view, actionId)) return view;
    }
    throw error;
  }
}

/** A role without a wallet whose action can be taken now. */
function isOpenFor({ instance, pinned }: InstanceView, actionId: number): boolean {
  const sender = pinned?.workflow.actions.get(actionId)?.sender;
  if (pinned === undefined || sender === undefined) return false;
  const isCurrent = currentActions(instance, pinned.workflow).some((each) => each.actionId === actionId);
  return isCurrent && !walletsOf(instance, pinned.workflow).has(sender);
}

async function beginInstance(deps: SubmitDeps, subject: Subject, request: StepRequest): Promise<Found> {
  const { registerId, blueprintId, actionId } = request;
  if (registerId === undefined || blueprintId === undefined)
    throw invalid('a new instance needs blueprintId and registerAddress');
  const pin = await choosePublication(deps, { registerId, blueprintId });
  const pinned = await deps.definitions.get(registerId, pin);
  getAction(pinned, actionId);
  if (pinned.workflow.actions.get(actionId)?.isStarting !== true) throw refusal('INSTANCE_REQUIRED');
  const now = new Date(deps.clock.nowMs());
  const { caller } = subject;
  const instance: Instance = {
    instanceId: randomUUIDv7(),
    registerId,
    pin,
    blueprintId,
    state: 'Pending',
    stateReason: undefined,
    createdAt: now,
    updatedAt: now,
    completedAt: undefined,
    firstTxId: undefined,
    lastTxId: undefined,
    routing: undefined,
    completedCount: 0,
    start: {
      participantWallets: {},
      tenantId: caller.organizationId ?? 'default',
      metadata: {},
      createdBy: creatorOf(caller),
      organizationId: caller.organizationId,
      startOperation: undefined,
    },
  };
  return { instance, pinned, wallets: await deps.listOwn(subject.bearer) };
}

function startOf({ instance }: Situation, { caller }: Subject) {
  const { instanceId, registerId, pin, blueprintId, createdAt } = instance;
  return {
    instanceId,
    registerId,
    pin,
    blueprintId,
    participantWallets: {},
    tenantId: caller.organizationId ?? 'default',
    metadata: {} as JsonObject & Record<string, string>,
    createdBy: creatorOf(caller),
    organizationId: caller.organizationId,
    createdAt,
  };
}

/** The operation that reserved the start, when it failed: another one may take its place. */
async function failedStart(
  { db }: Pick<SubmitDeps, 'db'>,
  id: string | undefined,
): Promise<string | undefined> {
  const operation = id === undefined ? undefined : await findOperation(db.read, id);
  return operation?.status === 'Failed' ? id : undefined;
}

function assertBeliefs(
  { instance, pinned, task }: Situation,
  { previousTxId, branchKey }: StepRequest,
): void {
  if (previousTxId !== undefined && previousTxId !== (instance.lastTxId ?? instance.pin))
    throw refusal('STALE_PREDECESSOR');
  if (branchKey === undefined) return;
  const entry = currentActions(instance, pinned.workflow).find(({ actionId }) => actionId === task.actionId);
  if (entry !== undefined && entry.branchKey !== branchKey)
    throw refusal('ACTION_NOT_CURRENT', { message: 'the action is not current in this branch' });
}

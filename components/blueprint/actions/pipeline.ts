import { randomBytes } from 'node:crypto';
import { clearPayload, type PayloadOwner } from '#core/blueprint/payload/envelope.ts';
import { planGroups } from '#core/blueprint/payload/groups.ts';
import { type RecipientKey, sealGroups } from '#core/blueprint/payload/seal.ts';
import { encodeRouting, INSTANCE_ID, ROUTING } from '#core/blueprint/steps/routing.ts';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Ledger, LedgerRegister } from '../clients/ledger.ts';
import type { Wallets } from '../clients/wallets.ts';
import { refusal } from '../errors.ts';
import type { Definitions } from '../instances/definitions.ts';
import { findInstance, isStepFolded } from '../instances/store.ts';
import type { OperationInput, RunningStatus, StepTask } from '../operations/operation.ts';
import type { Draft, Pipeline } from '../operations/runner.ts';
import { type EvaluateDeps, type EvaluatedStep, evaluateStep, type Situation } from './evaluate.ts';
import { resolveRecipientKeys } from './recipient-keys.ts';
import { draftTransaction, readSubmission, signDraft } from './transaction.ts';

export interface PipelineDeps extends EvaluateDeps {
  readonly definitions: Pick<Definitions, 'get'>;
  readonly ledger: Pick<Ledger, 'getPayloads' | 'findRegister' | 'findParticipantKeys' | 'submit'>;
  readonly wallets: Pick<Wallets, 'unwrapKeys' | 'findEncryptionKeys' | 'findKey' | 'signDigest'>;
}

/** Time in which a transaction can be sealed. */
const sealableMs = 15 * 60_000;

/** How a step becomes a signed transaction of a register. */
export function createPipeline(deps: PipelineDeps): Pipeline<PreparedStep> {
  return {
    evaluate: async (task, input, subjectToken) => {
      const { registerId, instanceId } = task;
      const instance = await findInstance(deps.db.read, registerId, instanceId, new Date(deps.clock.nowMs()));
      if (instance === undefined) throw refusal('INSTANCE_NOT_FOUND');
      const pinned = await deps.definitions.get(registerId, instance.pin);
      return prepareStep(deps, { task, instance, pinned }, input, async () => subjectToken);
    },
    build: (task, prepared, report) => build(deps, task, prepared, report),
    sign: (task, transaction, subjectToken) =>
      signDraft(transaction, (digest) => sign(deps, task.wallet, digest, subjectToken)),
    submit: (registerId, submission) => deps.ledger.submit(registerId, submission),
    isSealed: (registerId, txId) => isStepFolded(deps.db.read, registerId, txId),
    isNext: async ({ registerId, instanceId }, submission) => {
      const instance = await findInstance(deps.db.read, registerId, instanceId, new Date(deps.clock.nowMs()));
      return (instance?.lastTxId ?? instance?.pin) === readSubmission(submission).previousTxId;
    },
  };
}

/** A step that can be made: evaluated, on a register that takes it, with a key for each recipient. */
export interface PreparedStep {
  readonly step: EvaluatedStep;
  readonly register: Pick<LedgerRegister, 'devMode' | 'maxTransactionBytes'>;
  /** Wallets that read something of it, the sender first. */
  readonly recipients: readonly string[];
  /** By address; none on a register of development. */
  readonly keys: ReadonlyMap<string, RecipientKey>;
}

/**
 * Evaluates a step and finds what its transaction needs.
 * @throws AppError what evaluateStep and resolveRecipientKeys throw, not_found REGISTER_NOT_FOUND, unavailable
 * VALIDATOR_TOO_OLD
 */
export async function prepareStep(
  deps: PipelineDeps,
  situation: Situation,
  input: OperationInput,
  authority: () => Promise<string>,
): Promise<PreparedStep> {
  const { registerId } = situation.task;
  const step = await evaluateStep(deps, situation, input, authority);
  const register = await deps.ledger.findRegister(registerId);
  if (register === undefined) throw refusal('REGISTER_NOT_FOUND');
  if (register.validatorsLackingPins.length > 0)
    throw refusal('VALIDATOR_TOO_OLD', { retryAfterSeconds: 60 });
  const recipients = [...new Set(step.disclosures.map(({ address }) => address))];
  const keys = register.devMode
    ? new Map<string, RecipientKey>()
    : await resolveRecipientKeys(deps, registerId, recipients, input.externalRecipientKeys);
  return { step, register, recipients, keys };
}

type Report = (status: RunningStatus) => Promise<void>;

async function build(
  deps: PipelineDeps,
  task: StepTask,
  prepared: PreparedStep,
  report: Report,
): Promise<Draft> {
  const { registerId, wallet } = task;
  const { step, register, recipients } = prepared;
  await report('ResolvingKeys');
  const key = await deps.wallets.findKey(wallet);
  if (key === undefined || !isAlgorithm(key.algorithm)) throw refusal('SIGNING_REFUSED');
  const owner: PayloadOwner = {
    type: task.kind === 'Action' ? 'action' : 'rejection',
    blueprintId: step.pinned.workflow.blueprintId,
    actionId: String(task.actionId),
    instanceId: task.instanceId,
    blueprintDefinitionTxId: step.pinned.pin,
  };
  await report('Encrypting');
  const payload = canonicalJson(
    register.devMode ? clearPayload(owner, step.data) : encrypt(registerId, owner, prepared),
  );
  const others = recipients.filter((address) => address !== wallet).sort();
  const envelope = {
    registerId,
    blueprintId: owner.blueprintId,
    actionId: owner.actionId,
    type: task.kind,
    payloadHash: sha256Hex(payload),
    previousTransactionId: step.previousTxId,
    createdAt: step.createdAt,
    expiresAt: new Date(deps.clock.nowMs() + sealableMs).toISOString(),
    ...(others.length > 0 && { recipients: others }),
    metadata: {
      Type: task.kind,
      [INSTANCE_ID]: task.instanceId,
      [ROUTING]: encodeRouting(step.routing),
    },
  };
  const { publicKey, algorithm } = key;
  const parts = { envelope, key: { publicKey, algorithm }, sender: wallet, payload };
  return {
    transaction: draftTransaction(parts, register.maxTransactionBytes),
    recipientCount: recipients.length,
    warnings: step.warnings,
  };
}

function encrypt(registerId: string, owner: PayloadOwner, { step, keys }: PreparedStep) {
  const groups = planGroups(step.disclosures);
  return sealGroups({ registerId, ...owner }, groups, { keys, random: (size) => randomBytes(size) });
}

async function sign(
  { wallets }: PipelineDeps,
  wallet: string,
  digest: Uint8Array,
  subjectToken: string,
): Promise<Uint8Array> {
  try {
    return await wallets.signDigest(wallet, digest, subjectToken);
  } catch (cause) {
    if (isAppError(cause, 'unauthenticated')) throw refusal('AUTHORITY_EXPIRED', { cause });
    if (isAppError(cause, 'forbidden') || isAppError(cause, 'not_found'))
      throw refusal('SIGNING_REFUSED', { cause });
    const isOutage =
      isAppError(cause, 'unavailable') || isAppError(cause, 'timeout') || isAppError(cause, 'rate_limited');
    if (!isAppError(cause) || isOutage) throw cause;
    throw refusal('SIGNING_FAILED', { cause });
  }
}

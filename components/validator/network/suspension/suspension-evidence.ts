import { CONSENSUS_TYPES } from '#core/ledger/consensus.ts';
import { findControlAction } from '#core/ledger/governance/control.ts';
import { isSuspensionProposed } from '#core/ledger/governance/observers.ts';
import { operationPayloadSchema } from '#core/ledger/governance/operation.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import type { Accusation, UnsignedProposal } from '#core/ledger/governance/suspension.ts';
import type { Message } from '../../chain/consensus/messages.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import { controlOf } from '../../chain/state/state.ts';
import type { ProvenEvidence } from '../evidence/evidence.ts';

export type DoubleSign = Accusation['evidence'];

function signedOf(message: Message, validatorSetHash: string): DoubleSign['first'] {
  const { value, signature } = message;
  const docket = value && { docketHash: value.hash, merkleRoot: value.merkleRoot, logRoot: value.logRoot };
  return {
    polRound: message.kind === 'proposal' ? message.polRound : -1,
    ...(docket && { docket }),
    validatorSetHash,
    timestamp: message.kind === 'proposal' ? message.value.timestamp : message.timestamp,
    signature,
  };
}

/** Evidence in the shape of a suspension proposal; undefined for two certificates, which do not convict one validator of one act. */
export function doubleSignOf({
  evidence,
  networkId,
  validatorSetHash,
}: ProvenEvidence): DoubleSign | undefined {
  if (evidence.kind === 'conflicting-certificate') return undefined;
  const { first, second } = evidence;
  return {
    kind: 'double-sign',
    networkId,
    type: CONSENSUS_TYPES[first.kind],
    height: first.height,
    round: first.round,
    first: signedOf(first, validatorSetHash),
    second: signedOf(second, validatorSetHash),
  };
}

/** The rules and height of a register. */
interface RosterContext {
  readonly ledger: LedgerRules;
  /** Number of the next docket. */
  readonly height: number;
}

/**
 * The first evidence against a validator for which its suspension can be proposed now. Undefined when the validator is no longer
 * active, a suspension was already proposed, or all evidence is from before its current term.
 */
export function findSuspensionEvidence(
  { ledger, height }: RosterContext,
  validatorId: string,
  known: readonly ProvenEvidence[],
): DoubleSign | undefined {
  const accused = ledger.validators.find((each) => each.validatorId === validatorId);
  if (accused?.status !== 'Active' || isSuspensionProposed(ledger, validatorId)) return undefined;
  const ofTerm = known.filter(
    (each) =>
      each.validatorIds.includes(validatorId) &&
      each.height >= accused.effectiveFromDocket &&
      each.height <= height,
  );
  for (const each of ofTerm) {
    const evidence = doubleSignOf(each);
    if (evidence !== undefined) return evidence;
  }
  return undefined;
}

/** Validators that two messages of their own convict, sorted. */
export function convictedValidators(known: readonly ProvenEvidence[]): readonly string[] {
  const ids = known.flatMap(({ evidence, validatorIds }) =>
    evidence.kind === 'conflicting-certificate' ? [] : validatorIds,
  );
  return [...new Set(ids)].toSorted();
}

/** Whether a waiting transaction proposes to suspend a validator for a double sign. */
export function isSuspensionProposal(transaction: PooledTransaction, validatorId: string): boolean {
  if (transaction.type !== 'Control') return false;
  const { actionId, payload } = controlOf(transaction);
  if (findControlAction(actionId)?.stage !== 'propose') return false;
  const parsed = operationPayloadSchema.safeParse(payload);
  const operation = parsed.data?.operation;
  return (
    operation?.operationType === 'suspend-validator' &&
    operation.validatorId === validatorId &&
    operation.evidence?.kind === 'double-sign'
  );
}

/**
 * Delay by which members take turns in proposing: the unaccused ones in the order of the set, starting with the proposer of
 * the next docket.
 */
export function proposalDelayMs(
  members: readonly string[],
  { self, accused, height }: { self: string; accused: readonly string[]; height: number },
): number {
  const start = height % Math.max(1, members.length);
  const ordered = [...members.slice(start), ...members.slice(0, start)];
  const innocent = ordered.filter((validatorId) => !accused.includes(validatorId));
  return Math.max(0, innocent.indexOf(self)) * proposalStepMs;
}

/** Longer than a docket takes in normal operation. */
const proposalStepMs = 3_000;

/** The text of a submission from its parts and the signature. @param signature standard base64 */
export function submissionText(
  { envelope, txId, payloadText }: UnsignedProposal,
  publicKey: string,
  signature: string,
): string {
  const members = JSON.stringify({
    TransactionId: txId,
    RegisterId: envelope.registerId,
    BlueprintId: envelope.blueprintId,
    ActionId: envelope.actionId,
    PayloadHash: envelope.payloadHash,
    Signatures: [{ PublicKey: publicKey, SignatureValue: signature, Algorithm: 'ED25519' }],
    CreatedAt: envelope.createdAt,
    Metadata: envelope.metadata,
  });
  return `${members.slice(0, -1)},"Payload":${payloadText}}`;
}

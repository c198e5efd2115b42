import { CONSENSUS_TYPES } from '#core/ledger/consensus.ts';
import { findControlAction } from '#core/ledger/governance/control.ts';
import { isSuspensionAsked } from '#core/ledger/governance/observers.ts';
import { operationPayloadSchema } from '#core/ledger/governance/operation.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import type { Accusation, UnsignedProposal } from '#core/ledger/governance/suspension.ts';
import type { Message } from '../consensus/messages.ts';
import type { KnownEvidence } from '../peering/evidence.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { controlOf } from '../sealing/state.ts';

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

/** Evidence as a proposal carries it; undefined for two certificates, which convict nobody of one act. */
export function doubleSignOf({
  evidence,
  networkId,
  validatorSetHash,
}: KnownEvidence): DoubleSign | undefined {
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

/** Where a register stands. */
export interface Standing {
  readonly ledger: LedgerRules;
  /** Number of the next docket. */
  readonly height: number;
}

/**
 * Of the evidence about a validator, the first that its roster can be asked about now; undefined when there is nothing to
 * ask: it is no member any more, the roster was asked, or what it did was before its present term.
 */
export function findAccusation(
  { ledger, height }: Standing,
  validatorId: string,
  known: readonly KnownEvidence[],
): DoubleSign | undefined {
  const accused = ledger.validators.find((each) => each.validatorId === validatorId);
  if (accused?.status !== 'Active' || isSuspensionAsked(ledger, validatorId)) return undefined;
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
export function accusedBy(known: readonly KnownEvidence[]): readonly string[] {
  const ids = known.flatMap(({ evidence, validatorIds }) =>
    evidence.kind === 'conflicting-certificate' ? [] : validatorIds,
  );
  return [...new Set(ids)].toSorted();
}

/** Whether a waiting transaction asks to suspend a validator for two signed messages. */
export function asksToSuspend(transaction: PooledTransaction, validatorId: string): boolean {
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
 * Milliseconds that a member leaves to those before it: the innocent ones in the order of the set, beginning with the one
 * that proposes the next docket.
 */
export function turnMs(
  members: readonly string[],
  { self, accused, height }: { self: string; accused: readonly string[]; height: number },
): number {
  const start = height % Math.max(1, members.length);
  const ordered = [...members.slice(start), ...members.slice(0, start)];
  const innocent = ordered.filter((validatorId) => !accused.includes(validatorId));
  return Math.max(0, innocent.indexOf(self)) * turnStepMs;
}

/** Longer than a docket takes when nothing is wrong. */
const turnStepMs = 3_000;

/** The text of a submission of which only the signature is missing. @param signature standard base64 */
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

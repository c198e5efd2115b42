import { parsePublicKey } from '../../crypto/public-key.ts';
import type { Verifier } from '../../crypto/verify.ts';
import { decodeBase64Any } from '../../encoding/base64.ts';
import { isAppError } from '../../errors/errors.ts';
import { type ConsensusMessage, signBytes } from '../consensus.ts';
import type { ControlContext, Refused } from './control.ts';
import type { Evidence, Operation } from './operation.ts';
import { refuse } from './roster.ts';
import type { LedgerKey, LedgerRules } from './rules.ts';

type DoubleSign = Extract<Evidence, { kind: 'double-sign' }>;

function messageOf(registerId: string, evidence: DoubleSign, which: 'first' | 'second'): ConsensusMessage {
  const { networkId, type, height, round } = evidence;
  const { polRound, docket, validatorSetHash, timestamp } = evidence[which];
  return { type, networkId, registerId, height, round, polRound, docket, validatorSetHash, timestamp };
}

function isSigned(message: ConsensusMessage, signature: string, key: LedgerKey, verifier: Verifier): boolean {
  try {
    return verifier.verify({
      algorithm: key.algorithm,
      publicKey: parsePublicKey(key.algorithm, key.publicKey),
      message: signBytes(message),
      signature: decodeBase64Any(signature),
    });
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

/**
 * Whether two messages of one height, round and kind conflict and are both signed by the key. A correct validator never
 * signs both. They differ in the docket that they name or, for proposals, in the polka that they show; a difference in
 * time alone is no conflict.
 */
export function provesDoubleSign(
  registerId: string,
  evidence: DoubleSign,
  key: LedgerKey,
  verifier: Verifier,
): boolean {
  const first = messageOf(registerId, evidence, 'first');
  const second = messageOf(registerId, evidence, 'second');
  const isSame =
    first.polRound === second.polRound &&
    first.docket?.docketHash === second.docket?.docketHash &&
    first.docket?.merkleRoot === second.docket?.merkleRoot &&
    first.docket?.logRoot === second.docket?.logRoot;
  if (isSame) return false;
  return (
    isSigned(first, evidence.first.signature, key, verifier) &&
    isSigned(second, evidence.second.signature, key, verifier)
  );
}

/**
 * Judges that the evidence of an operation proves the fault. Two messages count only against the key that the validator
 * has held since before their height. A message under an earlier key or term does not count, and a message of a future
 * height cannot, because its set is not known.
 */
export function judgeEvidence(
  rules: LedgerRules,
  operation: Operation,
  context: ControlContext,
): Refused | undefined {
  if (operation.operationType !== 'suspend-validator' || operation.evidence === undefined) return undefined;
  const { evidence, validatorId } = operation;
  const isProven =
    evidence.kind === 'missed-slots'
      ? isOrderly(evidence)
      : judgeDoubleSign(rules, { validatorId, evidence }, context);
  return isProven ? undefined : refuse('VAL_PERM_019', 'operation.evidence');
}

function judgeDoubleSign(
  rules: LedgerRules,
  { validatorId, evidence }: { readonly validatorId: string; readonly evidence: DoubleSign },
  { docketNumber, verifier }: ControlContext,
): boolean {
  const accused = rules.validators.find((each) => each.validatorId === validatorId);
  if (accused === undefined) return false;
  const isOfTerm = evidence.height >= accused.effectiveFromDocket && evidence.height <= docketNumber;
  return isOfTerm && provesDoubleSign(rules.registerId, evidence, accused, verifier);
}

/** Whether slots are listed once each and in order. The roster judges what they prove. */
function isOrderly({ dockets }: Extract<Evidence, { kind: 'missed-slots' }>): boolean {
  return dockets.every((docket, index) => index === 0 || docket > (dockets[index - 1] ?? docket));
}

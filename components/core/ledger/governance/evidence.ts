import { parsePublicKey } from '../../crypto/public-key.ts';
import type { Verifier } from '../../crypto/verify.ts';
import { decodeBase64Any } from '../../encoding/base64.ts';
import { isAppError } from '../../errors/errors.ts';
import { type ConsensusMessage, signBytes } from '../consensus.ts';
import type { Evidence } from './operation.ts';
import type { LedgerKey } from './rules.ts';

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
 * Whether two messages of one height, round and kind name different dockets and are both signed by the key: nobody who
 * follows the protocol signs both (notes/ledger.md 4.3, L-116).
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
    first.docket?.docketHash === second.docket?.docketHash &&
    first.docket?.merkleRoot === second.docket?.merkleRoot &&
    first.docket?.logRoot === second.docket?.logRoot;
  if (isSame) return false;
  return (
    isSigned(first, evidence.first.signature, key, verifier) &&
    isSigned(second, evidence.second.signature, key, verifier)
  );
}

/** Whether slots are given once each and in order: what they prove is for the roster to judge (L-115). */
export function isOrderly({ dockets }: Extract<Evidence, { kind: 'missed-slots' }>): boolean {
  return dockets.every((docket, index) => index === 0 || docket > (dockets[index - 1] ?? docket));
}

import { sha256 } from '#core/crypto/hash.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { utf8 } from '#core/encoding/text.ts';
import { isAppError } from '#core/errors/errors.ts';
import { signingText } from '#core/ledger/transaction.ts';
import type { VerifyItem, VerifyPool } from '#kit/crypto/verify-pool.ts';
import type { SignatureCheck, VerifySignatures } from './verify.ts';

/** undefined for a key or signature that is not base64, or a key of the wrong form for its algorithm */
function itemOf({ txId, payloadHash, signature }: SignatureCheck): VerifyItem | undefined {
  const { algorithm } = signature;
  const text = signingText(txId, payloadHash);
  // the other algorithms hash the message themselves
  const preimage = algorithm === 'ED25519' ? undefined : utf8(text);
  try {
    const publicKey = parsePublicKey(algorithm, signature.publicKey);
    const bytes = decodeBase64Any(signature.signatureValue);
    return { algorithm, publicKey, digest: sha256(text), preimage, signature: bytes };
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

/** Verifies the transaction signatures of a docket on the worker threads of the pool. */
export function signaturesByPool(pool: Pick<VerifyPool, 'verifyBatch'>): VerifySignatures {
  return async (checks) => {
    const items = checks.map(itemOf);
    const verdicts = await pool.verifyBatch(items.flatMap((item) => item ?? []));
    let next = 0;
    return items.map((item) => {
      if (item === undefined) return false;
      next += 1;
      return verdicts[next - 1] === true;
    });
  };
}

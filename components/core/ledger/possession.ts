import type { Algorithm } from '../crypto/algorithm.ts';
import { parsePublicKey } from '../crypto/public-key.ts';
import type { Verifier } from '../crypto/verify.ts';
import { canonicalJson } from '../encoding/jcs.ts';
import { utf8 } from '../encoding/text.ts';
import { isAppError } from '../errors/errors.ts';

const DOMAIN = 'platform:validator-pop:v1\n';

/** The register, validator id and key that a proof of possession covers. */
interface PossessionFacts {
  readonly registerId: string;
  readonly validatorId: string;
  /** Standard padded base64 of the canonical key form. */
  readonly publicKey: string;
}

/** The bytes that a proof of possession signs: a domain line and the canonical JSON of the facts. */
export function possessionBytes({ registerId, validatorId, publicKey }: PossessionFacts): Uint8Array {
  return utf8(DOMAIN + canonicalJson({ registerId, validatorId, publicKey }));
}

/** Whether a proof of possession verifies with its own key. */
export function verifyPossession(
  verifier: Verifier,
  facts: PossessionFacts & { readonly algorithm: Algorithm },
  signature: Uint8Array,
): boolean {
  try {
    const publicKey = parsePublicKey(facts.algorithm, facts.publicKey);
    return verifier.verify({
      algorithm: facts.algorithm,
      publicKey,
      message: possessionBytes(facts),
      signature,
    });
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

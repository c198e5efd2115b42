import type { Certificate } from '#core/trust/certificate.ts';
import type { Possession } from '../../protocol/possession.ts';
import { p256Key, readAttested } from './attested.ts';

interface KeyContext {
  readonly authorities: readonly Certificate[];
  readonly nowMs: number;
}

/** Keys that an attester vouches for. */
interface AttestedKeys {
  readonly keys: readonly Possession[];
  /** The nonce that the attestation carries; undefined for one that a proof comes with. */
  readonly nonce: string | undefined;
  /** Whether it says when it expires. */
  readonly hasExpiry: boolean;
}

/** Most keys of an attestation. */
const mostKeys = 32;

/**
 * Reads a key attestation (OpenID4VCI 1.0, appendix D.1).
 * @returns the fault as a text
 */
export function readKeyAttestation(jwt: string, context: KeyContext): AttestedKeys | string {
  const attested = readAttested(jwt, { typ: 'key-attestation+jwt', ...context });
  if (typeof attested === 'string') return attested;
  const { attested_keys: listed, nonce, iat, exp } = attested.payload;
  if (typeof iat !== 'number') return 'it has no iat';
  if (!Array.isArray(listed) || listed.length === 0 || listed.length > mostKeys) return 'it attests no keys';
  const keys: Possession[] = [];
  for (const one of listed) {
    const key = p256Key(one);
    if (key === undefined) return 'it attests a key that is not on P-256';
    keys.push({ jwk: key.jwk, thumbprint: key.thumbprint, header: {}, payload: {} });
  }
  return { keys, nonce: typeof nonce === 'string' ? nonce : undefined, hasExpiry: exp !== undefined };
}

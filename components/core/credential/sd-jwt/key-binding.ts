import { sha2Base64Url } from '../../crypto/hash.ts';
import { findJwkKey, isJoseAlgorithm, type JoseAlgorithm, verifyJose } from '../../crypto/signature-key.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { CLOCK_LEEWAY_SECONDS, refusePresentation } from '../presentation.ts';
import { findNumericDate, judgeLifetime } from '../times.ts';
import { hashOfPayload } from './disclosures.ts';
import type { PresentedSdJwt } from './parse.ts';

/** Greatest age of a key binding, in seconds. */
const MAX_KEY_BINDING_AGE_SECONDS = 300;

/** What the holder must have signed. */
export interface KeyBindingExpectation {
  readonly nonce: string;
  /** The verifier's full client id, prefix included (OpenID4VP 1.0 appendix B.3.5). */
  readonly audience: string;
  readonly algorithms: readonly JoseAlgorithm[];
}

function holderKeyOf(claims: JsonObject): JsonObject {
  const { cnf } = claims;
  if (!isJsonObject(cnf) || !isJsonObject(cnf['jwk'])) {
    refusePresentation('KB_SIGNATURE', 'The credential is bound to no key', 'cnf');
  }
  return cnf['jwk'];
}

/**
 * Verifies the key binding of a presentation whose issuer's JWT was verified (RFC 9901 section 7.3 step 5).
 * @param claims the processed payload
 * @param atMs time of verification, in milliseconds since the epoch
 * @returns the holder's public JWK
 * @throws AppError unprocessable KB_MISSING, KB_SIGNATURE (type, algorithm, key, signature), KB_NONCE, KB_AUD,
 * KB_SD_HASH, EXPIRED (issued more than 300 s ago, or in the future)
 */
export function verifyKeyBinding(
  { issuerJwt, keyBinding, boundText }: PresentedSdJwt,
  claims: JsonObject,
  expected: KeyBindingExpectation,
  atMs: number,
): JsonObject {
  if (keyBinding === undefined) refusePresentation('KB_MISSING', 'The presentation has no key binding');
  const { header, payload, signed, signature } = keyBinding;
  const { alg, typ } = header;
  if (typ !== 'kb+jwt') refusePresentation('KB_SIGNATURE', 'The key binding is not of type kb+jwt', 'typ');
  if (!isJoseAlgorithm(alg) || !expected.algorithms.includes(alg)) {
    refusePresentation('KB_SIGNATURE', 'The algorithm of the key binding is not accepted', 'alg');
  }
  const jwk = holderKeyOf(claims);
  const key = findJwkKey(jwk);
  const isForAlgorithm = jwk['alg'] === undefined || jwk['alg'] === alg;
  if (key === undefined || !isForAlgorithm || !verifyJose(alg, key, signed, signature)) {
    refusePresentation('KB_SIGNATURE', "The key binding is not signed by the credential's key");
  }
  if (payload['nonce'] !== expected.nonce)
    refusePresentation('KB_NONCE', 'The nonce is another one', 'nonce');
  if (payload['aud'] !== expected.audience) {
    refusePresentation('KB_AUD', 'The key binding is for another verifier', 'aud');
  }
  const digest = sha2Base64Url(hashOfPayload(issuerJwt.payload), boundText);
  if (payload['sd_hash'] !== digest) {
    refusePresentation('KB_SD_HASH', 'The key binding belongs to another presentation', 'sd_hash');
  }
  judgeAge(payload, atMs);
  return jwk;
}

function judgeAge(payload: JsonObject, atMs: number): void {
  const issuedAt = findNumericDate(payload, 'iat');
  if (issuedAt === undefined) refusePresentation('FORMAT', 'The key binding has no time of issue', 'iat');
  const ageSeconds = atMs / 1000 - issuedAt;
  if (ageSeconds > MAX_KEY_BINDING_AGE_SECONDS || ageSeconds < -CLOCK_LEEWAY_SECONDS) {
    refusePresentation('EXPIRED', 'The key binding was not made now', 'iat');
  }
  judgeLifetime(payload, atMs);
}

import {
  isJoseAlgorithm,
  type JoseAlgorithm,
  type SignatureKey,
  verifyJose,
} from '../../crypto/signature-key.ts';
import { canonicalJson } from '../../encoding/jcs.ts';
import type { JsonObject } from '../../encoding/json.ts';
import { type Judgement, judge } from '../../errors/judgement.ts';
import { refusePresentation } from '../presentation.ts';
import { findStatusReference, type StatusReference } from '../status-list/reference.ts';
import { findNumericDate, judgeLifetime } from '../times.ts';
import { revealClaims } from './disclosures.ts';
import { type KeyBindingExpectation, verifyKeyBinding } from './key-binding.ts';
import { type PresentedSdJwt, parseSdJwt } from './parse.ts';

/** What a verifier expects of an SD-JWT VC. */
export interface SdJwtVcExpectation {
  /**
   * The key of the issuer: that of the leaf certificate of `x5c`, once its path was judged, or of the DID document. The
   * header itself never decides it.
   */
  readonly issuerKey: SignatureKey;
  /** Algorithms that issuers may use; ES256 alone unless the verifier is configured otherwise. */
  readonly algorithms: readonly JoseAlgorithm[];
  /** Types that were requested; undefined accepts every type. */
  readonly types: readonly string[] | undefined;
  /** Undefined for a credential that is stored or imported, not presented. */
  readonly keyBinding: KeyBindingExpectation | undefined;
  /** Time of verification, in milliseconds since the epoch. */
  readonly atMs: number;
}

/** A verified SD-JWT VC. */
interface VerifiedSdJwtVc {
  readonly vct: string;
  readonly issuer: string | undefined;
  /** All claims that were signed or disclosed. */
  readonly claims: JsonObject;
  /** The key that the holder proved; undefined when no key binding was expected. */
  readonly holderKey: JsonObject | undefined;
  readonly status: StatusReference | 'unsupported' | undefined;
  /** Seconds since the epoch. */
  readonly expiresAt: number | undefined;
}

/** `vc+sd-jwt` is the type of earlier drafts; it is accepted and never issued. */
const TYPES = ['dc+sd-jwt', 'vc+sd-jwt'];

/** Claims that only the issuer's signature may give (draft-ietf-oauth-sd-jwt-vc section "Registered JWT Claims"). */
const NEVER_DISCLOSED = ['iss', 'nbf', 'exp', 'cnf', 'vct', 'vct#integrity', 'status'];

/** Reads a presentation as far as the issuer's key can be looked up; violations FORMAT. */
export function judgeSdJwtForm(text: string): Judgement<PresentedSdJwt> {
  return judge(() => parseSdJwt(text));
}

function verifyIssuerJwt({ issuerJwt }: PresentedSdJwt, { issuerKey, algorithms }: SdJwtVcExpectation): void {
  const { alg, typ } = issuerJwt.header;
  if (typeof typ !== 'string' || !TYPES.includes(typ)) {
    refusePresentation('FORMAT', 'The JWT is no SD-JWT VC', 'typ');
  }
  if (!isJoseAlgorithm(alg) || !algorithms.includes(alg)) {
    refusePresentation('SIGNATURE', 'The signature algorithm is not accepted', 'alg');
  }
  if (!verifyJose(alg, issuerKey, issuerJwt.signed, issuerJwt.signature)) {
    refusePresentation('SIGNATURE', "The credential is not signed by the issuer's key");
  }
}

/** Refuses claims that must be signed in the clear, and are not, or not wholly. */
function judgeAlwaysSigned(signed: JsonObject, claims: JsonObject): void {
  for (const name of NEVER_DISCLOSED) {
    if (!Object.hasOwn(claims, name)) continue;
    if (!Object.hasOwn(signed, name) || canonicalJson(signed[name]) !== canonicalJson(claims[name])) {
      refusePresentation('DIGEST', 'A claim is selectively disclosable that must not be', name);
    }
  }
}

function textClaim(claims: JsonObject, name: string): string | undefined {
  if (!Object.hasOwn(claims, name)) return undefined;
  const value = claims[name];
  if (typeof value !== 'string' || value === '') refusePresentation('FORMAT', 'The claim is no text', name);
  return value;
}

function typeOf(claims: JsonObject, types: readonly string[] | undefined): string {
  const vct = textClaim(claims, 'vct');
  if (vct === undefined) refusePresentation('FORMAT', 'The credential has no type', 'vct');
  if (types !== undefined && !types.includes(vct)) {
    refusePresentation('VCT_MISMATCH', 'The credential is of another type', 'vct');
  }
  return vct;
}

/**
 * Verifies an SD-JWT VC (RFC 9901 section 7.3, draft-ietf-oauth-sd-jwt-vc section "Verification and Processing"): type
 * and algorithm, signature, disclosures, claims that must not be disclosable, lifetime, credential type, key binding.
 * Whether the issuer is trusted and the credential is not revoked is judged elsewhere. Stops at the first violation.
 */
export function verifySdJwtVc(
  presented: PresentedSdJwt,
  expected: SdJwtVcExpectation,
): Judgement<VerifiedSdJwtVc> {
  return judge(() => {
    verifyIssuerJwt(presented, expected);
    const signed = presented.issuerJwt.payload;
    const claims = revealClaims(signed, presented.disclosures);
    judgeAlwaysSigned(signed, claims);
    const vct = typeOf(claims, expected.types);
    judgeLifetime(claims, expected.atMs);
    findNumericDate(claims, 'iat');
    const { keyBinding, atMs } = expected;
    return {
      vct,
      issuer: textClaim(claims, 'iss'),
      claims,
      holderKey: keyBinding === undefined ? undefined : verifyKeyBinding(presented, claims, keyBinding, atMs),
      status: findStatusReference(claims['status']),
      expiresAt: findNumericDate(claims, 'exp'),
    };
  });
}

import {
  isJoseAlgorithm,
  type JoseAlgorithm,
  type SignatureKey,
  verifyJose,
} from '../../crypto/signature-key.ts';
import { isBase64Url } from '../../encoding/base64.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { type Judgement, judge } from '../../errors/judgement.ts';
import { type CompactJws, findCompactJws } from '../jws.ts';
import { refusePresentation } from '../presentation.ts';
import { findNumericDate, judgeLifetime } from '../times.ts';
import { STATUS_BITS, type StatusBits } from './status-list.ts';

/** What a verifier expects of a status list token. */
export interface StatusTokenExpectation {
  /** The address in the credential: what `sub` must be. */
  readonly uri: string;
  readonly issuerKey: SignatureKey;
  readonly algorithms: readonly JoseAlgorithm[];
  /** Time of verification, in milliseconds since the epoch. */
  readonly atMs: number;
}

/** A verified status list token; its list is still compressed. */
interface VerifiedStatusToken {
  readonly bits: StatusBits;
  /** zlib data; the caller inflates it with a bound. */
  readonly compressed: Uint8Array;
  /** Seconds for which the token may be cached; undefined when the issuer names none. */
  readonly ttlSeconds: number | undefined;
  /** Seconds since the epoch. */
  readonly expiresAt: number | undefined;
}

/** Reads a status list token as far as its key can be looked up; violations FORMAT. */
export function judgeStatusTokenForm(text: string): Judgement<CompactJws> {
  return judge(() => {
    const token = findCompactJws(text);
    if (token === undefined) refusePresentation('FORMAT', 'The status list token is malformed');
    return token;
  });
}

function listOf(payload: JsonObject): Pick<VerifiedStatusToken, 'bits' | 'compressed'> {
  const list = payload['status_list'];
  if (!isJsonObject(list)) refusePresentation('FORMAT', 'The token has no status list', 'status_list');
  const bits = STATUS_BITS.find((count) => count === list['bits']);
  const { lst } = list;
  if (bits === undefined || typeof lst !== 'string' || lst === '' || !isBase64Url(lst)) {
    refusePresentation('FORMAT', 'The status list is malformed', 'status_list');
  }
  return { bits, compressed: Buffer.from(lst, 'base64url') };
}

function ttlOf(payload: JsonObject): number | undefined {
  if (!Object.hasOwn(payload, 'ttl')) return undefined;
  const { ttl } = payload;
  if (typeof ttl !== 'number' || !(ttl > 0))
    refusePresentation('FORMAT', 'The ttl is no positive number', 'ttl');
  return ttl;
}

/**
 * Verifies a status list token (draft-ietf-oauth-status-list-21 sections 5.1 and 8.3): type, algorithm, signature,
 * subject, lifetime, form of the list. Violations FORMAT, SIGNATURE, EXPIRED.
 */
export function verifyStatusToken(
  { header, payload, signed, signature }: CompactJws,
  { uri, issuerKey, algorithms, atMs }: StatusTokenExpectation,
): Judgement<VerifiedStatusToken> {
  return judge(() => {
    const { alg, typ } = header;
    if (typ !== 'statuslist+jwt') refusePresentation('FORMAT', 'The token is no status list', 'typ');
    const isAccepted = isJoseAlgorithm(alg) && algorithms.includes(alg);
    if (!isAccepted || !verifyJose(alg, issuerKey, signed, signature)) {
      refusePresentation('SIGNATURE', "The status list is not signed by the issuer's key");
    }
    if (payload['sub'] !== uri) refusePresentation('FORMAT', 'The token is another status list', 'sub');
    if (findNumericDate(payload, 'iat') === undefined) {
      refusePresentation('FORMAT', 'The token has no time of issue', 'iat');
    }
    judgeLifetime(payload, atMs);
    return { ...listOf(payload), ttlSeconds: ttlOf(payload), expiresAt: findNumericDate(payload, 'exp') };
  });
}

import { calculateJwkThumbprint, compactVerify, importJWK } from 'jose';
import { findCompactJws } from '#core/credential/jws.ts';
import { verifyJose } from '#core/crypto/signature-key.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import type { Certificate } from '#core/trust/certificate.ts';
import { validatePath } from '#core/trust/path.ts';
import { judgeX5c } from '#core/trust/x5c.ts';

const mostCharacters = 16_384;
const leewaySeconds = 60;

/** A JWT of an attester, verified. */
interface Attested {
  readonly payload: JsonObject;
}

/**
 * Verifies a JWT that an attester signed under a certificate of a configured authority (HAIP 1.0, section 4.4): type, ES256,
 * `x5c` with a path to an authority, times.
 * @returns the fault as a text
 */
export function readAttested(
  jwt: string,
  {
    typ,
    authorities,
    nowMs,
  }: { readonly typ: string; readonly authorities: readonly Certificate[]; readonly nowMs: number },
): Attested | string {
  const jws = jwt.length > mostCharacters ? undefined : findCompactJws(jwt);
  if (jws === undefined) return 'it is no signed JWT';
  const { header, payload, signed, signature } = jws;
  if (header['typ'] !== typ) return `typ is not ${typ}`;
  if (header['alg'] !== 'ES256') return 'alg is not ES256';
  const path = judgeX5c(header['x5c']).result;
  if (path === undefined) return 'x5c names no certificates';
  const { result } = validatePath({ path, anchors: authorities, atMs: nowMs });
  if (result === undefined) return 'the attester is not trusted';
  if (!verifyJose('ES256', result.leafKey, signed, signature)) return 'the signature does not fit';
  const fault = faultOfTimes(payload, nowMs);
  return fault ?? { payload };
}

function faultOfTimes({ exp, nbf, iat }: JsonObject, nowMs: number): string | undefined {
  const seconds = nowMs / 1000;
  if (typeof exp === 'number' && exp + leewaySeconds <= seconds) return 'it has expired';
  if (typeof nbf === 'number' && nbf - leewaySeconds > seconds) return 'it is not valid yet';
  if (typeof iat === 'number' && iat - leewaySeconds > seconds) return 'it was issued in the future';
  return undefined;
}

/** Whether a JWT of type `typ` is signed with a JWK; its payload, or the fault as a text. */
export async function readSignedBy(jwt: string, typ: string, jwk: JsonObject): Promise<Attested | string> {
  const jws = jwt.length > mostCharacters ? undefined : findCompactJws(jwt);
  if (jws === undefined) return 'it is no signed JWT';
  if (jws.header['typ'] !== typ || jws.header['alg'] !== 'ES256') return `it is no ${typ} with ES256`;
  try {
    await compactVerify(jwt, await importJWK({ ...jwk }, 'ES256'), { algorithms: ['ES256'] });
  } catch {
    return 'the signature does not fit';
  }
  return { payload: jws.payload };
}

/** The public key in `cnf` of an attestation on P-256, with its thumbprint. */
export async function confirmedKey({
  cnf,
}: JsonObject): Promise<{ jwk: JsonObject; thumbprint: string } | undefined> {
  const jwk = isJsonObject(cnf) ? cnf['jwk'] : undefined;
  return isJsonObject(jwk) ? p256Key(jwk) : undefined;
}

/** A public key on P-256, its members alone. */
export async function p256Key(value: JsonObject): Promise<{ jwk: P256Key; thumbprint: string } | undefined> {
  const { kty, crv, x, y } = value;
  const isPublic =
    kty === 'EC' && crv === 'P-256' && typeof x === 'string' && typeof y === 'string' && !('d' in value);
  if (!isPublic) return undefined;
  const jwk = { kty, crv, x, y } as const;
  try {
    await importJWK(jwk, 'ES256');
    return { jwk, thumbprint: await calculateJwkThumbprint(jwk) };
  } catch {
    return undefined;
  }
}

interface P256Key {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  readonly x: string;
  readonly y: string;
  readonly [member: string]: unknown;
}

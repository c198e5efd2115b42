import { z } from 'zod';
import { findCompactJws } from '#core/credential/jws.ts';
import { findJwkKey, jwkThumbprint, type SignatureKey, verifyJose } from '#core/crypto/signature-key.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
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
  if ([exp, nbf, iat].some((time) => time !== undefined && typeof time !== 'number'))
    return 'exp, nbf or iat is no number';
  const seconds = nowMs / 1000;
  if (typeof exp === 'number' && exp + leewaySeconds <= seconds) return 'it has expired';
  if (typeof nbf === 'number' && nbf - leewaySeconds > seconds) return 'it is not valid yet';
  if (typeof iat === 'number' && iat - leewaySeconds > seconds) return 'it was issued in the future';
  return undefined;
}

/** Whether a JWT of type `typ` is signed with a key; its payload, or the fault as a text. */
export function readSignedBy(jwt: string, typ: string, { key }: AttestedKey): Attested | string {
  const jws = jwt.length > mostCharacters ? undefined : findCompactJws(jwt);
  if (jws === undefined) return 'it is no signed JWT';
  if (jws.header['typ'] !== typ || jws.header['alg'] !== 'ES256') return `it is no ${typ} with ES256`;
  if (!verifyJose('ES256', key, jws.signed, jws.signature)) return 'the signature does not fit';
  return { payload: jws.payload };
}

/** The public key in `cnf` of an attestation on P-256, with its thumbprint. */
export function confirmedKey({ cnf }: JsonObject): AttestedKey | undefined {
  return isJsonObject(cnf) ? p256Key(cnf['jwk']) : undefined;
}

/** A public key on P-256, its members alone. */
export function p256Key(value: unknown): AttestedKey | undefined {
  const jwk = memberSchema.safeParse(value).data;
  const [key, thumbprint] = [findJwkKey(value), jwkThumbprint(value)];
  if (jwk === undefined || key === undefined || thumbprint === undefined) return undefined;
  return { jwk, key, thumbprint: encodeBase64Url(thumbprint) };
}

const memberSchema = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
});

interface AttestedKey {
  readonly jwk: z.output<typeof memberSchema>;
  readonly key: SignatureKey;
  /** SHA-256 thumbprint (RFC 7638), base64url. */
  readonly thumbprint: string;
}

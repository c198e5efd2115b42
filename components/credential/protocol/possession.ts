import { z } from 'zod';
import { findCompactJws } from '#core/credential/jws.ts';
import { findJwkKey, jwkThumbprint, verifyJose } from '#core/crypto/signature-key.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';

/** Largest proof, in characters. */
const mostCharacters = 8_192;

/** Algorithms of proofs of possession. */
export const POSSESSION_ALGORITHMS = ['ES256', 'EdDSA'] as const;

const coordinate = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const ecKey = z.strictObject({ kty: z.literal('EC'), crv: z.literal('P-256'), x: coordinate, y: coordinate });
const edKey = z.strictObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: coordinate });

/** Members that say nothing about the key itself. */
const descriptive: readonly string[] = ['kid', 'use', 'alg', 'key_ops', 'x5t', 'x5t#S256'];

/** A public key of a wallet, its members alone. */
type PossessedKey = z.output<typeof ecKey> | z.output<typeof edKey>;

/** A verified proof that its sender has the private key of `jwk`. */
export interface Possession {
  readonly jwk: PossessedKey;
  /** SHA-256 thumbprint (RFC 7638), base64url. */
  readonly thumbprint: string;
  readonly header: Readonly<Record<string, unknown>>;
  readonly payload: Readonly<Record<string, unknown>>;
}

const headerSchema = z.looseObject({ typ: z.string(), alg: z.enum(POSSESSION_ALGORITHMS) });

/**
 * Verifies a JWT that carries the key it is signed with: `typ` as named, ES256 or EdDSA, the key as `jwk` and in no
 * other member, no private member, no `crit`.
 * @returns the fault as a text for the answer when it is no such proof
 */
export function readPossession(jwt: string, typ: string): Possession | string {
  if (jwt.length > mostCharacters) return 'the proof is too long';
  const jws = findCompactJws(jwt);
  if (jws === undefined) return 'the proof is no signed JWT';
  const { header, payload, signed, signature } = jws;
  const parsed = headerSchema.safeParse(header);
  if (!parsed.success) return `the header needs typ ${typ} and alg ${POSSESSION_ALGORITHMS.join(' or ')}`;
  if (parsed.data.typ !== typ) return `typ is not ${typ}`;
  const { alg, ...members } = parsed.data;
  if ('kid' in members || 'x5c' in members || 'trust_chain' in members)
    return 'the key must be in jwk, and in no other member';
  const jwk = readKey(members['jwk'], alg);
  const [key, thumbprint] = [findJwkKey(jwk), jwkThumbprint(jwk)];
  if (jwk === undefined || key === undefined || thumbprint === undefined)
    return 'jwk is no public key of the algorithm';
  if (!verifyJose(alg, key, signed, signature)) return 'the signature does not fit';
  return { jwk, thumbprint: encodeBase64Url(thumbprint), header, payload };
}

/** The key without what describes it; undefined when it is another kind of key, or a private one. */
function readKey(value: unknown, alg: (typeof POSSESSION_ALGORITHMS)[number]): PossessedKey | undefined {
  const record = z.record(z.string(), z.unknown()).safeParse(value);
  if (!record.success) return undefined;
  const members = Object.entries(record.data).filter(([name]) => !descriptive.includes(name));
  const schema = alg === 'ES256' ? ecKey : edKey;
  return schema.safeParse(Object.fromEntries(members)).data;
}

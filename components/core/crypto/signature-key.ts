import { constants, createPublicKey, type KeyObject, verify as verifySignature } from 'node:crypto';
import { isBase64Url } from '../encoding/base64.ts';
import { DER, derSequence, readDer } from '../encoding/der.ts';
import { canonicalBytes } from '../encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '../encoding/json.ts';
import { isStrictEd25519 } from './ed25519-rules.ts';
import { type Sha2, sha256 } from './hash.ts';

/** Kinds of keys that credentials and certificates are verified with. */
type SignatureKeyKind = 'P-256' | 'P-384' | 'P-521' | 'Ed25519' | 'RSA';

/** A public key of another party: what a certificate, a JWK or a COSE key holds. */
export interface SignatureKey {
  readonly kind: SignatureKeyKind;
  /** Bits of an RSA modulus; undefined for other kinds. */
  readonly modulusBits?: number | undefined;
  readonly object: KeyObject;
}

/** How a signature is made, in the terms of node:crypto. */
export type SignatureScheme =
  | { readonly family: 'ecdsa'; readonly hash: Sha2; readonly encoding: 'der' | 'ieee-p1363' }
  | { readonly family: 'rsa-pkcs1'; readonly hash: Sha2 }
  | { readonly family: 'rsa-pss'; readonly hash: Sha2; readonly saltBytes: number }
  | { readonly family: 'ed25519' };

interface JoseFacts {
  readonly kind: SignatureKeyKind;
  readonly scheme: SignatureScheme;
  /** Undefined where the key decides it. */
  readonly signatureBytes?: number;
}

const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;

/** Facts of the JWS algorithms (RFC 7518 section 3.1, RFC 8037, RFC 9864); no other algorithm is verified. */
const JOSE = {
  ES256: {
    kind: 'P-256',
    scheme: { family: 'ecdsa', hash: 'sha256', encoding: 'ieee-p1363' },
    signatureBytes: 64,
  },
  ES384: {
    kind: 'P-384',
    scheme: { family: 'ecdsa', hash: 'sha384', encoding: 'ieee-p1363' },
    signatureBytes: 96,
  },
  ES512: {
    kind: 'P-521',
    scheme: { family: 'ecdsa', hash: 'sha512', encoding: 'ieee-p1363' },
    signatureBytes: 132,
  },
  EdDSA: { kind: 'Ed25519', scheme: { family: 'ed25519' }, signatureBytes: 64 },
  Ed25519: { kind: 'Ed25519', scheme: { family: 'ed25519' }, signatureBytes: 64 },
  PS256: { kind: 'RSA', scheme: { family: 'rsa-pss', hash: 'sha256', saltBytes: 32 } },
} as const satisfies Record<string, JoseFacts>;

/** A JWS algorithm that can be verified; a caller still names those it accepts. */
export type JoseAlgorithm = keyof typeof JOSE;

/** Whether a value is the name of a JWS algorithm that can be verified. */
export function isJoseAlgorithm(value: unknown): value is JoseAlgorithm {
  return typeof value === 'string' && Object.hasOwn(JOSE, value);
}

const EC_CURVES: Readonly<Record<string, SignatureKeyKind>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};

/** Bytes of one coordinate. */
const COORDINATE_BYTES: Readonly<Record<string, number>> = { 'P-256': 32, 'P-384': 48, 'P-521': 66 };

function keyOf(object: KeyObject): SignatureKey | undefined {
  switch (object.asymmetricKeyType) {
    case 'ec': {
      const kind = EC_CURVES[object.asymmetricKeyDetails?.namedCurve ?? ''];
      return kind === undefined ? undefined : { kind, object };
    }
    case 'ed25519':
      return { kind: 'Ed25519', object };
    case 'rsa': {
      const { modulusLength = 0, publicExponent = 0n } = object.asymmetricKeyDetails ?? {};
      const sound = modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS;
      // A small exponent makes faults in the padding usable (FIPS 186-5 section 5.4); a long one makes verifying slow.
      const usable = publicExponent > 1n << 16n && publicExponent < 1n << 64n && publicExponent % 2n === 1n;
      return sound && usable ? { kind: 'RSA', modulusBits: modulusLength, object } : undefined;
    }
    default:
      return undefined;
  }
}

/** Whether a key names its curve (RFC 5480 section 2.1.1): OpenSSL takes the parameters of a curve as well. */
function namesCurve(der: Uint8Array): boolean {
  const [algorithm] = derSequence(readDer(der));
  return derSequence(algorithm)[1]?.tag === DER.oid;
}

/**
 * The key of a SubjectPublicKeyInfo in DER (RFC 5280 section 4.1.2.7): P-256, P-384, P-521, Ed25519, or RSA of 2048 to
 * 8192 bits with an exponent above 2^16. Undefined for anything else, curves given by parameters and malformed bytes included.
 */
export function findSpkiKey(der: Uint8Array): SignatureKey | undefined {
  try {
    const key = keyOf(createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' }));
    return key !== undefined && (key.kind === 'RSA' || key.kind === 'Ed25519' || namesCurve(der))
      ? key
      : undefined;
  } catch {
    return undefined;
  }
}

function isCoordinate(value: unknown, sizeBytes: number): value is string {
  return (
    typeof value === 'string' && isBase64Url(value) && Buffer.byteLength(value, 'base64url') === sizeBytes
  );
}

/** The members that RFC 7638 section 3.2 and RFC 8037 section 2 require, when they are well-formed. */
function requiredMembers(jwk: JsonObject): JsonObject | undefined {
  const { kty, crv, x, y } = jwk;
  if (kty === 'OKP')
    return crv === 'Ed25519' && isCoordinate(x, 32) && y === undefined ? { crv, kty, x } : undefined;
  if (kty !== 'EC' || typeof crv !== 'string') return undefined;
  const sizeBytes = Object.hasOwn(COORDINATE_BYTES, crv) ? COORDINATE_BYTES[crv] : undefined;
  if (sizeBytes === undefined || !isCoordinate(x, sizeBytes) || !isCoordinate(y, sizeBytes)) return undefined;
  return { crv, kty, x, y };
}

/**
 * The key of a public JWK (RFC 7517): P-256, P-384, P-521 with coordinates of full length, or Ed25519. Undefined for
 * anything else: private or symmetric members, a point that is not on the curve, `use` other than `sig`, `key_ops`
 * without `verify`.
 */
export function findJwkKey(jwk: unknown): SignatureKey | undefined {
  if (!isJsonObject(jwk) || Object.hasOwn(jwk, 'd') || Object.hasOwn(jwk, 'k')) return undefined;
  if (jwk['use'] !== undefined && jwk['use'] !== 'sig') return undefined;
  const operations = jwk['key_ops'];
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify')))
    return undefined;
  const key = requiredMembers(jwk);
  if (key === undefined) return undefined;
  try {
    return keyOf(createPublicKey({ key, format: 'jwk' }));
  } catch {
    return undefined;
  }
}

/** SHA-256 thumbprint of a public JWK (RFC 7638), 32 bytes; undefined for what `findJwkKey` does not accept. */
export function jwkThumbprint(jwk: unknown): Uint8Array | undefined {
  if (findJwkKey(jwk) === undefined || !isJsonObject(jwk)) return undefined;
  const members = requiredMembers(jwk);
  return members === undefined ? undefined : sha256(canonicalBytes(members));
}

/** SubjectPublicKeyInfo in DER, in one spelling for a key. */
export function spkiOfKey({ object }: SignatureKey): Uint8Array {
  return object.export({ format: 'der', type: 'spki' });
}

function verifyEd25519(key: KeyObject, message: Uint8Array, signature: Uint8Array): boolean {
  const point = key.export({ format: 'der', type: 'spki' }).subarray(-32);
  return isStrictEd25519(point, signature) && verifySignature(null, message, key, signature);
}

/** Verifies a signature; false when the key is not of the scheme's family, never an exception. */
export function verifyScheme(
  scheme: SignatureScheme,
  key: SignatureKey,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  const { kind, object } = key;
  try {
    switch (scheme.family) {
      case 'ed25519':
        return kind === 'Ed25519' && verifyEd25519(object, message, signature);
      case 'ecdsa':
        if (kind !== 'P-256' && kind !== 'P-384' && kind !== 'P-521') return false;
        return verifySignature(
          scheme.hash,
          message,
          { key: object, dsaEncoding: scheme.encoding },
          signature,
        );
      case 'rsa-pkcs1':
        return kind === 'RSA' && verifySignature(scheme.hash, message, object, signature);
      case 'rsa-pss': {
        const options = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: scheme.saltBytes };
        return (
          kind === 'RSA' && verifySignature(scheme.hash, message, { key: object, ...options }, signature)
        );
      }
    }
  } catch {
    return false;
  }
}

/**
 * Verifies a JWS signature (RFC 7515 section 5.2, RFC 7518 section 3). False when the key is not of the algorithm, when
 * the signature has another length, and for malformed input.
 */
export function verifyJose(
  algorithm: JoseAlgorithm,
  key: SignatureKey,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  const facts: JoseFacts = JOSE[algorithm];
  if (key.kind !== facts.kind) return false;
  if (facts.signatureBytes !== undefined && facts.signatureBytes !== signature.length) return false;
  return verifyScheme(facts.scheme, key, message, signature);
}

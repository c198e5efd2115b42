import type { Sha2 } from '../crypto/hash.ts';
import type { SignatureScheme } from '../crypto/signature-key.ts';
import { DER, type DerNode, derChildren, derCount, derInner, derOid, derSequence } from '../encoding/der.ts';

const ECDSA: Readonly<Record<string, Sha2>> = {
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
};

const RSA_PKCS1: Readonly<Record<string, Sha2>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
};

const RSA_PSS = '1.2.840.113549.1.1.10';
const MGF1 = '1.2.840.113549.1.1.8';

const SHA2: Readonly<Record<string, Sha2>> = {
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};

function isAbsentOrNull(parameters: DerNode | undefined): boolean {
  return (
    parameters === undefined || (parameters.tag === DER.null && parameters.contentStart === parameters.end)
  );
}

function hashOf(node: DerNode | undefined): Sha2 | undefined {
  const [oid, parameters, ...more] = derSequence(node);
  return more.length === 0 && isAbsentOrNull(parameters) ? SHA2[derOid(oid)] : undefined;
}

const HASH_BYTES: Readonly<Record<Sha2, number>> = { sha256: 32, sha384: 48, sha512: 64 };

/**
 * RSASSA-PSS-params (RFC 4055 section 3.1): the defaults are SHA-1, so hash, mask and salt must all be present. The salt is as
 * long as the hash, as section 3.1 recommends.
 */
function pssScheme(parameters: DerNode | undefined): SignatureScheme | undefined {
  const fields = new Map(derSequence(parameters).map((field) => [field.tag, derInner(field)]));
  const [hashField, maskField, saltField] = [fields.get(0xa0), fields.get(0xa1), fields.get(0xa2)];
  if (hashField === undefined || maskField === undefined || saltField === undefined) return undefined;
  const [maskOid, maskHash, ...more] = derSequence(maskField);
  const trailer = fields.get(0xa3);
  if (derOid(maskOid) !== MGF1 || more.length > 0 || (trailer !== undefined && derCount(trailer) !== 1))
    return undefined;
  const hash = hashOf(hashField);
  if (hash === undefined || hashOf(maskHash) !== hash) return undefined;
  const saltBytes = derCount(saltField);
  return saltBytes === HASH_BYTES[hash] ? { family: 'rsa-pss', hash, saltBytes } : undefined;
}

/**
 * The scheme of an AlgorithmIdentifier of a signature (RFC 5280 section 4.1.1.2, RFC 4055, RFC 5758): ECDSA, RSA PKCS#1
 * v1.5 and RSASSA-PSS with SHA-256, SHA-384 or SHA-512. Undefined for every other one, SHA-1 and MD5 included.
 * @throws AppError invalid DER_MALFORMED
 */
export function findSignatureScheme(algorithm: DerNode): SignatureScheme | undefined {
  const [identifier, parameters, ...more] = derChildren(algorithm);
  const oid = derOid(identifier);
  if (more.length > 0) return undefined;
  if (oid === RSA_PSS) return pssScheme(parameters);
  const ecdsa = ECDSA[oid];
  if (ecdsa !== undefined) {
    return parameters === undefined ? { family: 'ecdsa', hash: ecdsa, encoding: 'der' } : undefined;
  }
  const hash = RSA_PKCS1[oid];
  return hash !== undefined && isAbsentOrNull(parameters) ? { family: 'rsa-pkcs1', hash } : undefined;
}

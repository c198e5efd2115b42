import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type Certificate, KEY_USAGE } from './certificate.ts';
import { isAcceptedAlgorithm } from './signature-algorithm.ts';

/** Why a certificate path is refused; `EXPIRED` also before its time. */
interface PathViolation {
  readonly code: 'INVALID' | 'EXPIRED';
  /** Place of the certificate in the path, the leaf is 0. */
  readonly index: number;
  /** Reads on after "certificate N": "is no CA". */
  readonly message: string;
}

/** Certificates of a path, leaf and anchor included. */
export const MAX_PATH_LENGTH = 5;

const CURVES: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1']);
const MIN_RSA_BITS = 2048;
const MIN_RSA_EXPONENT = 65_537n;

/**
 * Judges a path of certificates, the leaf first and the anchor or topmost certificate last (RFC 5280, section 6.1): times,
 * names, signatures, basic constraints, path length, key usage, algorithms and keys (P-256, P-384, RSA from 2,048 bits;
 * SHA-256 or better). Name constraints and unknown critical extensions are refused. Whether the last certificate is
 * trusted, and whether one was revoked, the caller judges. An empty list means that the path is valid.
 */
export function validatePath(path: readonly Certificate[], nowMs: number): readonly PathViolation[] {
  if (path.length === 0 || path.length > MAX_PATH_LENGTH) {
    const message = `is at the end of a path of ${path.length} certificates; at most ${MAX_PATH_LENGTH} are accepted`;
    return [{ code: 'INVALID', index: Math.max(0, path.length - 1), message }];
  }
  return path.flatMap((certificate, index) => {
    const invalid = [
      ...judgeCertificate(certificate),
      ...judgeAuthority(path, index),
      ...judgeLink(certificate, path[index + 1]),
    ].map((message) => ({ code: 'INVALID', index, message }) as const);
    const late = judgeTime(certificate, nowMs);
    return late === undefined ? invalid : [...invalid, { code: 'EXPIRED', index, message: late } as const];
  });
}

function judgeTime({ notBeforeMs, notAfterMs }: Certificate, nowMs: number): string | undefined {
  if (nowMs < notBeforeMs) return `is not valid before ${new Date(notBeforeMs).toISOString()}`;
  // The last second belongs to the validity as a whole.
  return nowMs >= notAfterMs + 1_000 ? `expired at ${new Date(notAfterMs).toISOString()}` : undefined;
}

function judgeCertificate(certificate: Certificate): string[] {
  const { signatureAlgorithm, unknownCritical, hasNameConstraints, spki } = certificate;
  const messages = unknownCritical.map((oid) => `has the critical extension ${oid}, which is not supported`);
  if (hasNameConstraints) messages.push('has name constraints, which are not supported');
  if (!isAcceptedAlgorithm(signatureAlgorithm))
    messages.push('is signed with an algorithm that is not accepted; ECDSA or RSA with SHA-256 or better is');
  if (!isAcceptedKey(findKey(spki)))
    messages.push('has a key that is not accepted; P-256, P-384 and RSA from 2048 bits are');
  return messages;
}

/** What a certificate above the leaf must be. */
function judgeAuthority(path: readonly Certificate[], index: number): string[] {
  const certificate = path[index];
  if (index === 0 || certificate === undefined) return [];
  const { isAuthority, keyUsage, pathLength } = certificate;
  if (!isAuthority) return ['is no CA'];
  const messages: string[] = [];
  if (keyUsage !== undefined && (keyUsage & KEY_USAGE.keyCertSign) === 0)
    messages.push('may not sign certificates by its key usage');
  const below = path.slice(1, index).filter((each) => !isSelfIssued(each)).length;
  if (pathLength !== undefined && below > pathLength)
    messages.push(`allows ${pathLength} CAs below it, and the path has ${below}`);
  return messages;
}

/** How a certificate follows from the one above it; the last one of a path follows from itself if it names itself. */
function judgeLink(certificate: Certificate, above: Certificate | undefined): string[] {
  if (above === undefined) {
    const isBroken = isSelfIssued(certificate) && !isSignedBy(certificate, certificate);
    return isBroken ? ['names itself as its issuer and is not signed by itself'] : [];
  }
  if (!isSame(certificate.issuer, above.subject)) return ['names another issuer than the next certificate'];
  return isSignedBy(certificate, above) ? [] : ['is not signed by the next certificate'];
}

/** Subject and issuer are the same name. */
export function isSelfIssued({ subject, issuer }: Certificate): boolean {
  return isSame(subject, issuer);
}

/** The issuer names itself, and its own key verifies the signature: what an anchor is, and no chain to one may hold. */
export function isSelfSigned(certificate: Certificate): boolean {
  return isSelfIssued(certificate) && isSignedBy(certificate, certificate);
}

/** Whether the key of the issuer verifies the signature of a certificate; names are not compared. */
export function isSignedBy({ der }: Certificate, issuer: Pick<Certificate, 'spki'>): boolean {
  const key = findKey(issuer.spki);
  if (key === undefined) return false;
  try {
    return new X509Certificate(der).verify(key);
  } catch {
    return false;
  }
}

function findKey(spki: Uint8Array): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

function isAcceptedKey(key: KeyObject | undefined): boolean {
  const { namedCurve, modulusLength = 0, publicExponent = 0n } = key?.asymmetricKeyDetails ?? {};
  if (key?.asymmetricKeyType === 'ec') return namedCurve !== undefined && CURVES.has(namedCurve);
  const isRsa = key?.asymmetricKeyType === 'rsa' || key?.asymmetricKeyType === 'rsa-pss';
  return isRsa && modulusLength >= MIN_RSA_BITS && publicExponent >= MIN_RSA_EXPONENT;
}

/** Byte for byte: names are compared in the form in which they were encoded. */
function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.from(one).equals(other);
}

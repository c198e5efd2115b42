import { sha256Hex } from '../crypto/hash.ts';
import {
  findSpkiKey,
  type SignatureKey,
  type SignatureScheme,
  verifyScheme,
} from '../crypto/signature-key.ts';
import {
  DER,
  type DerNode,
  derBitBytes,
  derBytes,
  derCount,
  derInner,
  derInteger,
  derSequence,
  derTime,
  expectDer,
  readDer,
} from '../encoding/der.ts';
import { equalBytes } from '../encoding/text.ts';
import { AppError, isAppError } from '../errors/errors.ts';
import { judge } from '../errors/judgement.ts';
import { type ExtensionList, readExtensions } from './extension-list.ts';
import { findSignatureScheme } from './signature-algorithm.ts';

/** An X.509 certificate (RFC 5280 section 4.1); nothing about it is verified. */
export interface Certificate {
  readonly der: Uint8Array;
  /** SHA-256 of the DER, 64 lower-case hexadecimal characters. */
  readonly thumbprint: string;
  /** 1 to 3. */
  readonly version: number;
  /** Two's complement. */
  readonly serial: Uint8Array;
  /** Names as they are written: they are compared byte for byte (section 4.1.2.4 demands one spelling). */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** SubjectPublicKeyInfo in DER. */
  readonly spki: Uint8Array;
  /** Undefined when the kind of key is not supported. */
  readonly key: SignatureKey | undefined;
  /** By object identifier. */
  readonly extensions: ExtensionList;
  readonly signed: Uint8Array;
  /** Undefined when the algorithm is not supported. */
  readonly scheme: SignatureScheme | undefined;
  readonly signature: Uint8Array;
}

const MAX_CERTIFICATE_BYTES = 16 * 1024;
const TAG_VERSION = 0xa0;
const TAG_EXTENSIONS = 0xa3;
const UNIQUE_IDS = [0x81, 0x82];

function refuse(message: string, cause?: unknown): never {
  throw new AppError('invalid', 'CERT_MALFORMED', `Certificate: ${message}`, { cause });
}

/** What follows the public key: identifiers of the second version, and extensions, in this order. */
function readTrailing(nodes: readonly DerNode[]): ExtensionList {
  let last = 0;
  for (const { tag } of nodes) {
    if ((tag !== TAG_EXTENSIONS && !UNIQUE_IDS.includes(tag)) || (tag & 0x1f) <= last)
      refuse('an unknown member');
    last = tag & 0x1f;
  }
  const found = nodes.find(({ tag }) => tag === TAG_EXTENSIONS);
  return found === undefined ? new Map() : readExtensions(derInner(found));
}

function readCertificate(der: Uint8Array): Certificate {
  const whole = derSequence(readDer(der));
  const [body, algorithm, signature] = whole;
  if (body === undefined || algorithm === undefined || whole.length !== 3) refuse('it has no three parts');
  const members = derSequence(body);
  const [first] = members;
  const hasVersion = first?.tag === TAG_VERSION;
  const version = hasVersion ? derCount(derInner(first)) + 1 : 1;
  const [serial, inner, issuer, validity, subject, spki, ...trailing] = hasVersion
    ? members.slice(1)
    : members;
  if (inner === undefined || !equalBytes(derBytes(inner), derBytes(algorithm))) {
    refuse('it names two signature algorithms');
  }
  const times = derSequence(validity);
  const [notBefore, notAfter] = times;
  if (times.length !== 2) refuse('its validity is malformed');
  const spkiBytes = derBytes(expectDer(spki, DER.sequence));
  return {
    der,
    thumbprint: sha256Hex(der),
    version,
    serial: derInteger(serial),
    issuer: derBytes(expectDer(issuer, DER.sequence)),
    subject: derBytes(expectDer(subject, DER.sequence)),
    notBeforeMs: derTime(notBefore),
    notAfterMs: derTime(notAfter),
    spki: spkiBytes,
    key: findSpkiKey(spkiBytes),
    extensions: readTrailing(trailing),
    signed: derBytes(body),
    scheme: findSignatureScheme(expectDer(algorithm, DER.sequence)),
    signature: derBitBytes(signature),
  };
}

/**
 * Parses a certificate in DER, strictly: one encoding of each value, one extension of each kind, nothing behind it.
 * @param der at most 16 KiB
 * @throws AppError invalid CERT_MALFORMED
 */
export function parseCertificate(der: Uint8Array): Certificate {
  if (der.length > MAX_CERTIFICATE_BYTES) refuse('it is too long');
  try {
    return readCertificate(der);
  } catch (cause) {
    if (isAppError(cause, 'invalid') && cause.code === 'DER_MALFORMED') refuse(cause.message, cause);
    throw cause;
  }
}

/** The certificate in DER; undefined for bytes that `parseCertificate` refuses. */
export function findCertificate(der: Uint8Array): Certificate | undefined {
  return judge(() => parseCertificate(der)).result;
}

/** Whether the key of one certificate signed the other, and the other names it as its issuer. */
export function isIssuedBy(certificate: Certificate, issuer: Certificate): boolean {
  const { scheme, signed, signature } = certificate;
  if (scheme === undefined || issuer.key === undefined) return false;
  return (
    equalBytes(certificate.issuer, issuer.subject) && verifyScheme(scheme, issuer.key, signed, signature)
  );
}

/** Whether subject and issuer have one name (RFC 5280 section 3.2). */
export function isSelfIssued({ issuer, subject }: Certificate): boolean {
  return equalBytes(issuer, subject);
}

/** Whether a certificate names itself as its issuer, and its own key verifies its signature. */
export function isSelfSigned(certificate: Certificate): boolean {
  return isIssuedBy(certificate, certificate);
}

import 'reflect-metadata';
import type { X509Certificate } from 'node:crypto';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509Certificate as ParsedCertificate,
  SubjectAlternativeNameExtension,
} from '@peculiar/x509';
import { AppError } from '#core/errors/errors.ts';

// SPIFFE-ID standard: lower-case trust domain, path segments without percent-encoding, no trailing slash.
const SPIFFE_ID = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)+)$/;
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;
const spiffeIdLimitBytes = 2048;
const SERVICE_PATH = /^\/service\/([A-Za-z0-9._-]+)$/;

interface SpiffeName {
  /** The whole id, `spiffe://trust-domain/path`. */
  readonly id: string;
  readonly trustDomain: string;
  /** Path with its leading slash. */
  readonly path: string;
}

export interface SvidFacts extends SpiffeName {
  /** Milliseconds since the epoch. */
  readonly notBeforeMs: number;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

function refuse(reason: string, cause?: unknown): AppError {
  return new AppError('unauthenticated', 'SVID_REFUSED', `certificate refused: ${reason}`, { cause });
}

/**
 * Parses a SPIFFE id exactly by the SPIFFE-ID standard, section 2.
 *
 * Errors: unauthenticated/SVID_REFUSED.
 */
export function parseSpiffeId(text: string): SpiffeName {
  const match = SPIFFE_ID.exec(text);
  const trustDomain = match?.[1];
  const path = match?.[2];
  if (trustDomain === undefined || path === undefined || Buffer.byteLength(text) > spiffeIdLimitBytes) {
    throw refuse('its URI is no SPIFFE id');
  }
  if (DOT_SEGMENT.test(path)) throw refuse('its SPIFFE id has a relative path segment');
  return { id: text, trustDomain, path };
}

/**
 * Reads the DER of a leaf certificate as an X.509-SVID: exactly one URI SAN, taken from the ASN.1 and never from its
 * printed form; no CA; key usage present with digitalSignature and without keyCertSign and cRLSign (SPIFFE X509-SVID
 * standard, sections 2, 4 and 5.2). The caller judges chain and validity in time.
 *
 * Errors: unauthenticated/SVID_REFUSED.
 */
export function readSvid(der: Uint8Array): SvidFacts {
  const certificate = parseCertificate(der);
  const constraints = certificate.getExtension(BasicConstraintsExtension);
  if (constraints?.ca === true) throw refuse('a signing certificate cannot authenticate');
  const usages = certificate.getExtension(KeyUsagesExtension)?.usages ?? 0;
  if ((usages & KeyUsageFlags.digitalSignature) === 0) throw refuse('its key usage lacks digitalSignature');
  if ((usages & (KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign)) !== 0) {
    throw refuse('its key usage allows signing certificates');
  }
  const names = certificate.getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  const [uri, ...others] = names.filter((name) => name.type === 'url').map((name) => name.value);
  if (uri === undefined) throw refuse('it has no URI name');
  if (others.length > 0) throw refuse('it has more than one URI name');
  return {
    ...parseSpiffeId(uri),
    notBeforeMs: certificate.notBefore.getTime(),
    expiresAtMs: certificate.notAfter.getTime(),
  };
}

function parseCertificate(der: Uint8Array): ParsedCertificate {
  try {
    return new ParsedCertificate(new Uint8Array(der));
  } catch (cause) {
    throw refuse('it cannot be parsed', cause);
  }
}

/** The client id of `spiffe://{installation}/service/{client_id}`, undefined for any other path. */
export function clientIdOfName(name: SpiffeName): string | undefined {
  return SERVICE_PATH.exec(name.path)?.[1];
}

/** Like readSvid, for a certificate of node:crypto. */
export function readNodeCertificate(certificate: X509Certificate): SvidFacts {
  return readSvid(certificate.raw);
}

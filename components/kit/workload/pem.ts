import { createPrivateKey, type KeyObject } from 'node:crypto';
import { splitPem } from '#core/encoding/pem.ts';
import { AppError } from '#core/errors/errors.ts';

const SEQUENCE = 0x30;

/**
 * Splits concatenated DER certificates, the form of chains and bundles in the Workload API.
 *
 * Errors: unavailable/WORKLOAD_IDENTITY_MISSING on anything but whole ASN.1 sequences.
 */
export function splitCertificates(bytes: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    const end = offset + sequenceLength(bytes.subarray(offset));
    if (end > bytes.length) throw damaged();
    parts.push(bytes.slice(offset, end));
    offset = end;
  }
  return parts;
}

/** Length in bytes of the DER sequence at the start, header included. */
function sequenceLength(bytes: Uint8Array): number {
  const [tag, first] = bytes;
  if (tag !== SEQUENCE || first === undefined) throw damaged();
  if (first < 0x80) return 2 + first;
  const count = first & 0x7f;
  if (count === 0 || count > 3 || bytes.length < 2 + count) throw damaged();
  let length = 0;
  for (const byte of bytes.subarray(2, 2 + count)) length = length * 256 + byte;
  return 2 + count + length;
}

/**
 * Certificates of a PEM text as DER, in its order; other blocks are ignored.
 *
 * Errors: unavailable/WORKLOAD_IDENTITY_MISSING when there is none, or one that is no base64.
 */
export function getPemCertificates(text: string): readonly Uint8Array[] {
  const certificates = splitPem(text)?.certificates ?? [];
  if (certificates.length === 0) throw damaged();
  return certificates;
}

/** Reads a PKCS#8 DER private key. */
export function readPrivateKey(der: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8' });
}

function damaged(): AppError {
  return new AppError(
    'unavailable',
    'WORKLOAD_IDENTITY_MISSING',
    'damaged certificates from the source of identities',
  );
}

import { createHash, X509Certificate } from 'node:crypto';

/** A certificate of DER exactly: no PEM, and no bytes behind it. Undefined for anything else. */
export function findCertificate(der: Uint8Array): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    return certificate.raw.equals(der) ? certificate : undefined;
  } catch {
    return undefined;
  }
}

/** SHA-256, hex. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The subject on one line, most specific name first (RFC 4514 without its escapes of the outer form). */
export function subjectOf(certificate: X509Certificate): string {
  return certificate.subject.split('\n').reverse().join(', ');
}

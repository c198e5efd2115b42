import { createHash, X509Certificate } from 'node:crypto';

/**
 * A certificate of DER exactly: no PEM, and no bytes behind it, with a key and times that can be read. Undefined for
 * anything else.
 */
export function findCertificate(der: Uint8Array): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    return certificate.raw.equals(der) && isReadable(certificate) ? certificate : undefined;
  } catch {
    return undefined;
  }
}

/** The key is decoded when it is read, which throws where it cannot be. */
function isReadable({ publicKey, validFromDate, validToDate }: X509Certificate): boolean {
  const times = [validFromDate, validToDate].map((date) => date.getTime());
  return publicKey.type === 'public' && !times.some(Number.isNaN);
}

/** SHA-256, hex. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The subject on one line, most specific name first (RFC 4514 without its escapes of the outer form). */
export function subjectOf(certificate: X509Certificate): string {
  return onOneLine(certificate.subject);
}

/** The issuer in the same form. */
export function issuerOf(certificate: X509Certificate): string {
  return onOneLine(certificate.issuer);
}

/** Node.js has no text for a name without attributes, whatever its types say. */
function onOneLine(name: string | undefined): string {
  return (name ?? '').split('\n').reverse().join(', ');
}

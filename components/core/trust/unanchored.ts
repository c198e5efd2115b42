import { equalBytes } from '../encoding/text.ts';
import { type Certificate, isIssuedBy, isSelfIssued } from './certificate.ts';
import { MAX_PATH_CERTIFICATES } from './path.ts';
import { type CertificateFault, judgeCertificates } from './path-certificates.ts';

const MAX_SERIAL_BYTES = 20;

/**
 * Judges a path that leads to no trusted anchor, such as an upload, by the rules of `validatePath`, and each
 * certificate by itself, so that a message can name the one with the fault. The path may end with its root or below it.
 * Serial numbers must be positive and short (RFC 5280 section 4.1.2.2), which is not asked of anchors of trust lists.
 * Whether the last certificate is trusted, and whether one is revoked, is judged elsewhere.
 * @param path the leaf first, each followed by its issuer; at most five
 * @param atMs milliseconds since the epoch
 * @returns an empty list for a valid path
 */
export function judgeUnanchoredPath(path: readonly Certificate[], atMs: number): readonly CertificateFault[] {
  if (path.length === 0 || path.length > MAX_PATH_CERTIFICATES) {
    const message = `is at the end of a path of ${path.length} certificates; at most ${MAX_PATH_CERTIFICATES} are accepted`;
    return [{ code: 'TRUST_CHAIN_INVALID', index: Math.max(0, path.length - 1), message }];
  }
  const links = path.flatMap((certificate, index) =>
    [...judgeSigned(certificate), ...judgeLink(certificate, path[index + 1])].map(
      (message) => ({ code: 'TRUST_CHAIN_INVALID', index, message }) as const,
    ),
  );
  return [...judgeCertificates(path, atMs), ...links].sort((one, other) => one.index - other.index);
}

function judgeSigned({ scheme, serial }: Certificate): string[] {
  const messages: string[] = [];
  if (scheme === undefined)
    messages.push('is signed with an algorithm that is not accepted; ECDSA or RSA with SHA-256 or better is');
  const isPositive = (serial[0] ?? 0x80) < 0x80 && serial.some((byte) => byte !== 0);
  if (!isPositive || serial.length > MAX_SERIAL_BYTES)
    messages.push('has a serial number that is not positive, or longer than 20 bytes');
  return messages;
}

/** How a certificate follows from the one above it; the last one of a path follows from itself if it names itself. */
function judgeLink(certificate: Certificate, above: Certificate | undefined): string[] {
  const issuer = above ?? certificate;
  if (above === undefined && !isSelfIssued(certificate)) return [];
  if (!equalBytes(certificate.issuer, issuer.subject))
    return ['names another issuer than the next certificate'];
  // An algorithm or a key that is not accepted is a fault of its own.
  if (certificate.scheme === undefined || issuer.key === undefined || isIssuedBy(certificate, issuer))
    return [];
  return above === undefined
    ? ['names itself as its issuer and is not signed by itself']
    : ['is not signed by the next certificate'];
}

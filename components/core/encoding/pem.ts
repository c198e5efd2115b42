import { isStandardBase64 } from './base64.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g;

/** A PEM text (RFC 7468), taken apart. */
interface PemParts {
  /** DER of its certificates, in their order; what they hold is not judged. */
  readonly certificates: readonly Buffer[];
  /** The text without them: blocks of other labels, and text around the blocks. */
  readonly rest: string;
}

/** The certificates of a PEM text (RFC 7468 section 5), and the rest of it. Undefined where a block is no base64. */
export function splitPem(text: string): PemParts | undefined {
  const bodies = [...text.matchAll(CERTIFICATE)].map(([, body = '']) => body.replaceAll(/\s/g, ''));
  if (bodies.some((body) => body === '' || !isStandardBase64(body))) return undefined;
  const certificates = bodies.map((body) => Buffer.from(body, 'base64'));
  return { certificates, rest: text.replaceAll(CERTIFICATE, '') };
}

/**
 * The certificates of a PEM text that has no other blocks; text around the blocks is passed over. Undefined where there is
 * none, where a block is no base64 or of another label, or where one does not end.
 */
export function parsePemCertificates(text: string): readonly Buffer[] | undefined {
  const parts = splitPem(text);
  if (parts === undefined || parts.certificates.length === 0) return undefined;
  return parts.rest.includes('-----') ? undefined : parts.certificates;
}

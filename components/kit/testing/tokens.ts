/** Order of the group of P-256 (SEC 2, section 2.4.2). */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** The same ES256 token with the other form (r, n - s) of its signature, which verifies whenever (r, s) does. */
export function withOtherSignatureForm(token: string): string {
  const at = token.lastIndexOf('.') + 1;
  const bytes = Buffer.from(token.slice(at), 'base64url');
  const s = BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  bytes.write((P256_ORDER - s).toString(16).padStart(64, '0'), 32, 'hex');
  return token.slice(0, at) + bytes.toString('base64url');
}

/**
 * Base64url text that a lenient decoder reads as the same bytes: a bit is set behind the last one.
 * @throws Error when the last character has no such bit
 */
export function withTrailingBits(segment: string): string {
  if (segment.length % 4 === 0) throw new Error('every bit of the last character counts');
  return segment.slice(0, -1) + ALPHABET.charAt(ALPHABET.indexOf(segment.slice(-1)) ^ 1);
}

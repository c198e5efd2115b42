import { createHash, randomBytes, randomInt } from 'node:crypto';

/**
 * What a single-use secret is for. Tokens are found by their hash, codes by their subject; none is accepted for another
 * purpose.
 */
export type OneTimePurpose =
  | 'sign-in'
  | 'email-verification'
  | 'registration-disowned'
  | 'password-reset'
  | 'email-sign-in-code'
  | 'sms-sign-in-code'
  | 'email-challenge-code'
  | 'sms-challenge-code'
  | 'email-channel-code'
  | 'phone-code'
  | 'passkey-ceremony'
  | 'oauth-state'
  | 'link-pending'
  | 'challenge';

const tokenBytes = 32;

/** Most wrong uses of one secret; the next one finds it spent. */
export const MAX_ATTEMPTS = 5;

/** @returns 43 characters of base64url: 256 random bits; `prefix` tells the kind of token to who reads it. */
export function createToken(prefix = ''): string {
  return `${prefix}${randomBytes(tokenBytes).toString('base64url')}`;
}

/** SHA-256 is enough for a token of 256 random bits. */
export function hashOfToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** @returns six decimal digits, each of the million codes as likely as another */
export function createCode(): string {
  return String(randomInt(1_000_000)).padStart(6, '0');
}

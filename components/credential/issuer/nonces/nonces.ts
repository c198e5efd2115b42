import { equalSecrets, hmacSha256 } from '#core/crypto/hash.ts';
import type { RandomBytes } from '#core/crypto/key-wrap.ts';
import { encodeBase64Url, isBase64Url } from '#core/encoding/base64.ts';

/** What a nonce is for: proofs of possession (OpenID4VCI 1.0, section 7), or DPoP (RFC 9449, section 8). */
type NoncePurpose = 'c_nonce' | 'dpop';

type NonceVerdict = 'live' | 'expired' | 'unknown';

/** How long a nonce can be used, in seconds. */
export const nonceSeconds = 300;

const timeBytes = 6;
const randomSize = 16;
const macBytes = 16;
const wholeBytes = timeBytes + randomSize + macBytes;

/**
 * Nonces that the issuer recognises by a code of authentication, so that the nonce endpoint stores nothing. Each is
 * for one purpose and one issuer; a nonce that serves once is written when it is used.
 */
export class Nonces {
  readonly #secret: Buffer;
  readonly #issuer: string;
  readonly #random: RandomBytes;

  /** @param secret 32 bytes, the same in all replicas */
  constructor({ secret, issuer, random }: { secret: Buffer; issuer: string; random: RandomBytes }) {
    if (secret.length !== 32) throw new RangeError('the secret of nonces must have 32 bytes');
    this.#secret = secret;
    this.#issuer = issuer;
    this.#random = random;
  }

  create(purpose: NoncePurpose, nowMs: number): string {
    const body = Buffer.alloc(timeBytes + randomSize);
    body.writeUIntBE(nowMs, 0, timeBytes);
    body.set(this.#random(randomSize), timeBytes);
    return encodeBase64Url(Buffer.concat([body, this.#mac(purpose, body)]));
  }

  judge(purpose: NoncePurpose, nonce: string, nowMs: number): NonceVerdict {
    if (!isBase64Url(nonce)) return 'unknown';
    const bytes = Buffer.from(nonce, 'base64url');
    if (bytes.length !== wholeBytes) return 'unknown';
    const body = bytes.subarray(0, timeBytes + randomSize);
    if (!equalSecrets(this.#mac(purpose, body), bytes.subarray(timeBytes + randomSize))) return 'unknown';
    const ageMs = nowMs - body.readUIntBE(0, timeBytes);
    // Replicas whose clocks differ accept the nonces of each other.
    return ageMs > nonceSeconds * 1000 ? 'expired' : 'live';
  }

  #mac(purpose: NoncePurpose, body: Uint8Array): Buffer {
    const message = Buffer.concat([Buffer.from(`${purpose}\n${this.#issuer}\n`), body]);
    return Buffer.from(hmacSha256(this.#secret, message)).subarray(0, macBytes);
  }
}

import { createHmac, hash, hkdfSync, timingSafeEqual } from 'node:crypto';

/** SHA-256 in one shot; text counts as UTF-8. 32 bytes. */
export function sha256(data: string | Uint8Array): Uint8Array {
  // Hashed as latin1 text and copied: the Buffer that hash() returns is allocated outside the heap, which costs as much
  // as the hash.
  return new Uint8Array(Buffer.from(hash('sha256', data, 'latin1'), 'latin1'));
}

/** SHA-256 as 64 lower-case hexadecimal characters. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** Hash functions of the SHA-2 family (FIPS 180-4) that other parties may choose, in the names of node:crypto. */
export type Sha2 = 'sha256' | 'sha384' | 'sha512';

/** A hash of the SHA-2 family in one shot; text counts as UTF-8. 32, 48 or 64 bytes. */
export function sha2(name: Sha2, data: string | Uint8Array): Uint8Array {
  return new Uint8Array(hash(name, data, 'buffer'));
}

/** The same as base64url without padding. */
export function sha2Base64Url(name: Sha2, data: string | Uint8Array): string {
  return hash(name, data, 'base64url');
}

/** HMAC-SHA-512 (RFC 2104). 64 bytes. */
export function hmacSha512(key: string | Uint8Array, data: Uint8Array): Uint8Array {
  return createHmac('sha512', key).update(data).digest();
}

/** HMAC-SHA-256 (RFC 2104). 32 bytes. */
export function hmacSha256(key: string | Uint8Array, data: string | Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(data).digest();
}

/** HKDF-SHA-256 (RFC 5869). The caller wipes the key. */
export function hkdfSha256(
  secret: Uint8Array,
  salt: Uint8Array,
  { info, sizeBytes }: { readonly info: Uint8Array; readonly sizeBytes: number },
): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, sizeBytes));
}

/** Whether two secrets are equal, in time that depends on their lengths only. */
export function equalSecrets(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

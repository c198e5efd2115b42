import { createHmac, timingSafeEqual } from 'node:crypto';
import { isBase64Url } from '#core/encoding/base64.ts';

/** The content of a refresh token: its family and generation. */
interface RefreshToken {
  readonly familyId: string;
  readonly generation: number;
}

const prefix = 'rt_';
const familyBytes = 16;
const macBytes = 32;
const totalBytes = familyBytes + 4 + macBytes;

/**
 * `rt_` + base64url(family id ‖ generation ‖ HMAC-SHA-256). Only the generation is stored, a lost successor can be
 * computed again, and a forged token causes no database read.
 */
export function formatRefreshToken(token: RefreshToken, key: Uint8Array): string {
  const head = Buffer.alloc(familyBytes + 4);
  head.write(token.familyId.replaceAll('-', ''), 0, 'hex');
  head.writeUInt32BE(token.generation, familyBytes);
  return prefix + Buffer.concat([head, mac(head, key)]).toString('base64url');
}

/** Undefined for a text that this installation did not issue. */
export function parseRefreshToken(text: string, key: Uint8Array): RefreshToken | undefined {
  if (!looksLikeRefreshToken(text)) return undefined;
  const body = text.slice(prefix.length);
  if (!isBase64Url(body)) return undefined;
  const bytes = Buffer.from(body, 'base64url');
  if (bytes.length !== totalBytes) return undefined;
  const head = bytes.subarray(0, familyBytes + 4);
  if (!timingSafeEqual(mac(head, key), bytes.subarray(familyBytes + 4))) return undefined;
  return { familyId: formatUuid(head.subarray(0, familyBytes)), generation: head.readUInt32BE(familyBytes) };
}

export function looksLikeRefreshToken(text: string): boolean {
  return text.startsWith(prefix) && text.length <= 128;
}

function mac(head: Buffer, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update('chancery refresh token v1').update(head).digest();
}

function formatUuid(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

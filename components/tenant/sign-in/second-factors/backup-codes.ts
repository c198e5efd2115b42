import { createHmac, randomInt } from 'node:crypto';

/** Letters and digits that are not mistaken for each other: no I, O, 0 or 1. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const codeLength = 8;
const codesOfASet = 10;

/** @returns ten codes of 40 random bits, `XXXX-XXXX` */
export function createBackupCodes(): readonly string[] {
  return Array.from({ length: codesOfASet }, createBackupCode);
}

function createBackupCode(): string {
  const text = Array.from({ length: codeLength }, () => alphabet[randomInt(alphabet.length)]).join('');
  return `${text.slice(0, 4)}-${text.slice(4)}`;
}

/** 40 bits do not resist a search, so the hash has a key. Dashes, blanks and case do not matter. */
export function hashOfBackupCode(key: Uint8Array, accountId: string, code: string): Buffer {
  const text = code.replace(/[\s-]/g, '').toUpperCase();
  return createHmac('sha256', key)
    .update(JSON.stringify(['backup-code', accountId, text]))
    .digest();
}

import { isUtf8 } from 'node:buffer';

/** UTF-8 bytes of text. The caller passes well-formed text; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return Buffer.from(text, 'utf8');
}

/** Decodes UTF-8; undefined when the bytes are not well-formed. A byte order mark is kept as a character. */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  if (!isUtf8(bytes)) return undefined;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** Copies ASCII text: a substring keeps the whole text that it was cut from in memory. */
export function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** Compares two texts by UTF-16 code units: the same order on every machine, unlike any locale. */
export function compareCodeUnits(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** Concatenates bytes. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

/** Whether two byte strings are equal. Not in constant time: for public values only. */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && Buffer.compare(left, right) === 0;
}

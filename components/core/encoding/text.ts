import { isUtf8 } from 'node:buffer';

/** UTF-8 bytes of text. The caller holds well-formed text; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return Buffer.from(text, 'utf8');
}

/** Text of UTF-8 bytes; undefined when they are not well-formed UTF-8. A byte order mark is kept as a character. */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  if (!isUtf8(bytes)) return undefined;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** The same ASCII text in memory of its own: text that was cut from a longer one keeps all of that. */
export function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** Order of two texts by UTF-16 code units: the same on every machine, unlike any locale. */
export function compareCodeUnits(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** Bytes one after the other. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

/** Whether two byte strings are equal; not in constant time, for public values only. */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && Buffer.compare(left, right) === 0;
}

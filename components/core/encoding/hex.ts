import { AppError } from '../errors/errors.ts';

/** Lower-case hexadecimal text of bytes. */
export function encodeHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/**
 * Decodes hexadecimal text, either case.
 * @param sizeBytes the exact size required, when there is one
 * @throws AppError invalid INVALID_HEX for any other character, an odd length or another size
 */
export function decodeHex(text: string, sizeBytes?: number): Uint8Array {
  const wrongSize = sizeBytes !== undefined && text.length !== sizeBytes * 2;
  if (wrongSize || text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) {
    throw new AppError('invalid', 'INVALID_HEX', 'Text is not hexadecimal of the expected length');
  }
  return Buffer.from(text, 'hex');
}

/** Whether text is lower-case hexadecimal of exactly so many bytes. */
export function isLowerHex(text: string, sizeBytes: number): boolean {
  return text.length === sizeBytes * 2 && /^[0-9a-f]*$/.test(text);
}

import { z } from 'zod';

/** Whether a column and canonical JSON can hold the text: no NUL, no unpaired surrogate. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}

/** Schema of such a text in a request. */
export function storable(maxLength: number) {
  return z.string().max(maxLength).refine(isStorable, 'holds characters that cannot be stored');
}

/** A text without NUL, as a column holds it. The signed record keeps the original. */
export function withoutNul(text: string): string {
  return text.replaceAll('\u0000', '\ufffd');
}

import { z } from 'zod';

/** Text that a column and canonical JSON can hold: no NUL, no half of a surrogate pair. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}

/** Such a text of a request. */
export function storable(maxLength: number) {
  return z.string().max(maxLength).refine(isStorable, 'holds characters that cannot be stored');
}

/** A text as a column holds it. What was signed stands in its record as it is. */
export function withoutNul(text: string): string {
  return text.replaceAll('\u0000', '\ufffd');
}

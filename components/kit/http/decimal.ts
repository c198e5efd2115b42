import { z } from 'zod';

const DECIMAL = /^(?:0|[1-9][0-9]*)$/;

/** Bounds of a parameter, both inclusive; 0 and the largest safe integer when absent. */
interface DecimalRange {
  readonly min?: number;
  readonly max?: number;
}

/**
 * zod schema of a whole number in a query or a path, written in ASCII decimal digits without sign or leading zeros, so
 * that a number has one spelling. `0x10`, `1e3`, `1.0`, `+1` and white space are refused, and so are numbers outside
 * the range. OpenAPI shows an integer with its bounds.
 */
export function decimal({ min = 0, max = Number.MAX_SAFE_INTEGER }: DecimalRange = {}) {
  return z.preprocess(readDecimal, z.int(message).min(min).max(max));
}

/** Like `decimal`, but a number outside the range counts as the nearest bound. */
export function clampedDecimal({ min = 0, max = Number.MAX_SAFE_INTEGER }: DecimalRange = {}) {
  const clamp = (value: number) => Math.min(Math.max(value, min), max);
  return z.preprocess((text) => saturated(readDecimal(text)), z.int(message).min(0).transform(clamp));
}

const message = 'expected a whole number in decimal digits';

/**
 * The number that a text spells, which need not be a safe integer; anything else unchanged, for the schema to refuse.
 */
function readDecimal(text: unknown): unknown {
  return typeof text === 'string' && DECIMAL.test(text) ? Number(text) : text;
}

function saturated(value: unknown): unknown {
  return typeof value === 'number' ? Math.min(value, Number.MAX_SAFE_INTEGER) : value;
}

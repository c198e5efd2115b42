import { operatorError } from '../errors.ts';

const SCALE: Readonly<Record<string, bigint>> = {
  m: 1n,
  '': 1000n,
  k: 1000n ** 2n,
  M: 1000n ** 3n,
  G: 1000n ** 4n,
  T: 1000n ** 5n,
  P: 1000n ** 6n,
  E: 1000n ** 7n,
  Ki: 1000n * 1024n,
  Mi: 1000n * 1024n ** 2n,
  Gi: 1000n * 1024n ** 3n,
  Ti: 1000n * 1024n ** 4n,
  Pi: 1000n * 1024n ** 5n,
  Ei: 1000n * 1024n ** 6n,
};

/**
 * Thousandths of a quantity that the schema accepts, rounded up as Kubernetes does.
 * @throws AppError invalid INVALID_QUANTITY
 */
export function quantityMilli(text: string): bigint {
  const [, whole, fraction = '', unit = ''] = /^([0-9]+)(?:[.]([0-9]+))?([A-Za-z]*)$/.exec(text) ?? [];
  const scale = SCALE[unit];
  if (whole === undefined || scale === undefined) {
    throw operatorError('INVALID_QUANTITY', 'Text is not a quantity');
  }
  const divisor = 10n ** BigInt(fraction.length);
  return (BigInt(whole + fraction) * scale + divisor - 1n) / divisor;
}

/** A quantity as a whole number, rounded up: bytes of `1.5Gi`, processors of `2`. Throws like quantityMilli. */
export function quantityBytes(text: string): bigint {
  return (quantityMilli(text) + 999n) / 1000n;
}

/** Negative when the first quantity is smaller, zero when they are equal. Throws like quantityMilli. */
export function compareQuantities(left: string, right: string): number {
  const difference = quantityMilli(left) - quantityMilli(right);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** Suffixes by their factor, largest first. */
const BINARY = ['Ei', 'Pi', 'Ti', 'Gi', 'Mi', 'Ki'] as const;
const DECIMAL = ['E', 'P', 'T', 'G', 'M', 'k', '', 'm'] as const;

/** The API server's canonical text of a quantity: a whole number of the largest unit that divides it. Throws like quantityMilli. */
export function canonicalQuantity(text: string): string {
  const milli = quantityMilli(text);
  if (milli === 0n) return '0';
  const units = text.endsWith('i') ? BINARY : DECIMAL;
  const unit = units.find((each) => milli % (SCALE[each] ?? 1n) === 0n);
  return unit === undefined
    ? canonicalQuantity(String(quantityBytes(text)))
    : `${milli / (SCALE[unit] ?? 1n)}${unit}`;
}

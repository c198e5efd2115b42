import { AppError } from '../errors/errors.ts';

/** Ticks of 100 ns in one second, the resolution of every comparison of timestamps (notes/ledger.md L-03). */
export const TICKS_PER_SECOND = 10_000_000n;
export const TICKS_PER_MILLISECOND = 10_000n;
export const TICKS_PER_MICROSECOND = 10n;

const FORM = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])(\d{2}):(\d{2}))$/;

/**
 * The form of every timestamp that we make inside something hashed: `YYYY-MM-DDTHH:mm:ss.ffffff0+00:00` (decision D5).
 * @param micros microseconds since the epoch, years 0000 to 9999
 */
export function formatLedgerTimestamp(micros: bigint): string {
  let ms = micros / 1000n;
  let rest = micros % 1000n;
  if (rest < 0n) {
    ms -= 1n;
    rest += 1000n;
  }
  const text = new Date(Number(ms)).toISOString();
  if (text.length !== 24) {
    throw new AppError('invalid', 'INVALID_TIMESTAMP', 'The year of the timestamp has no four digits');
  }
  return `${text.slice(0, 23)}${rest.toString().padStart(3, '0')}0+00:00`;
}

/**
 * Ticks of 100 ns since the epoch of an ISO 8601 timestamp with an offset; undefined when the text is not one.
 * One to nine fraction digits are read; those after the seventh do not count.
 */
export function findTimestamp(text: string): bigint | undefined {
  const parts = FORM.exec(text);
  if (parts === null) return undefined;
  const field = (index: number): number => Number(parts[index] ?? '0');
  const [year, month, day] = [field(1), field(2), field(3)];
  const [hour, minute, second] = [field(4), field(5), field(6)];
  if (hour > 23 || minute > 59 || second > 59 || field(9) > 23 || field(10) > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, 0);
  const sameDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!sameDay || date.getUTCFullYear() !== year) return undefined;
  const fraction = BigInt((parts[7] ?? '').padEnd(7, '0').slice(0, 7));
  const offsetMinutes = (field(9) * 60 + field(10)) * (parts[8] === '-' ? -1 : 1);
  const ms = BigInt(date.getTime() - offsetMinutes * 60_000);
  return ms * TICKS_PER_MILLISECOND + fraction;
}

/**
 * Ticks of 100 ns since the epoch.
 * @throws AppError invalid INVALID_TIMESTAMP
 */
export function parseTimestamp(text: string): bigint {
  const ticks = findTimestamp(text);
  if (ticks === undefined) {
    throw new AppError('invalid', 'INVALID_TIMESTAMP', 'Text is not an ISO 8601 timestamp with an offset');
  }
  return ticks;
}

/** Microseconds since the epoch of ticks, rounded down. */
export function ticksToMicros(ticks: bigint): bigint {
  const micros = ticks / TICKS_PER_MICROSECOND;
  return ticks % TICKS_PER_MICROSECOND < 0n ? micros - 1n : micros;
}

/** Milliseconds since the epoch of ticks, rounded down. */
export function ticksToMs(ticks: bigint): number {
  return Math.floor(Number(ticks / 1000n) / 10);
}

/** Timestamps of interfaces outside hashed things: milliseconds and `Z` (decision D5). */
export function apiTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}

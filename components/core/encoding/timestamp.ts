import { AppError } from '../errors/errors.ts';

/** Ticks of 100 ns in one second, the resolution of every comparison of timestamps. */
export const TICKS_PER_SECOND = 10_000_000n;
export const TICKS_PER_MILLISECOND = 10_000n;
const TICKS_PER_MICROSECOND = 10n;

/**
 * The form of every timestamp that is written inside hashed data: `YYYY-MM-DDTHH:mm:ss.ffffff0+00:00`.
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

/** The number that `count` digits spell; NaN when one of the characters is no digit. */
function digitsAt(text: string, start: number, count: number): number {
  let value = 0;
  for (let at = start; at < start + count; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}

const daysOfFourCenturies = 146_097;
const millisecondsOfADay = 86_400_000;

/** `YYYY-MM-DD` as days since the epoch; NaN for an invalid date. */
function daysOf(text: string): number {
  if (text.charAt(4) !== '-' || text.charAt(7) !== '-') return Number.NaN;
  const [year, month, day] = [digitsAt(text, 0, 4), digitsAt(text, 5, 2), digitsAt(text, 8, 2)];
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= daysOfMonth(year, month))) return Number.NaN;
  // Date.UTC reads years below 100 as years of the twentieth century.
  return Date.UTC(year + 400, month - 1, day) / millisecondsOfADay - daysOfFourCenturies;
}

function daysOfMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** `THH:mm:ss` as seconds; NaN for an invalid time of day. */
function secondsOf(text: string): number {
  if (text.charAt(10) !== 'T' || text.charAt(13) !== ':' || text.charAt(16) !== ':') return Number.NaN;
  const [hour, minute, second] = [digitsAt(text, 11, 2), digitsAt(text, 14, 2), digitsAt(text, 17, 2)];
  return hour <= 23 && minute <= 59 && second <= 59 ? hour * 3_600 + minute * 60 + second : Number.NaN;
}

const fractionStart = 19;

/** Index of the end of the fraction, its point included; the index where it would begin when there is none. */
function fractionEndOf(text: string): number {
  if (text.charAt(fractionStart) !== '.') return fractionStart;
  let end = fractionStart + 1;
  while (end < text.length && digitsAt(text, end, 1) >= 0) end += 1;
  return end;
}

/** `Z` or `+HH:mm` to the end of the text, as seconds ahead of UTC; NaN for anything else. */
function offsetOf(text: string, start: number): number {
  const sign = text.charAt(start);
  if (sign === 'Z') return text.length === start + 1 ? 0 : Number.NaN;
  if ((sign !== '+' && sign !== '-') || text.charAt(start + 3) !== ':' || text.length !== start + 6)
    return Number.NaN;
  const [hour, minute] = [digitsAt(text, start + 1, 2), digitsAt(text, start + 4, 2)];
  if (!(hour <= 23 && minute <= 59)) return Number.NaN;
  return (hour * 3_600 + minute * 60) * (sign === '-' ? -1 : 1);
}

/**
 * Ticks of 100 ns since the epoch of an ISO 8601 timestamp with an offset; undefined when the text is not one. One to
 * nine fraction digits are accepted; digits after the seventh are ignored.
 */
export function findTimestamp(text: string): bigint | undefined {
  const end = fractionEndOf(text);
  const digits = end - fractionStart - 1;
  if (digits === 0 || digits > 9) return undefined;
  const counted = Math.min(digits, 7);
  const fraction = digits < 0 ? 0 : digitsAt(text, fractionStart + 1, counted) * 10 ** (7 - counted);
  const seconds = daysOf(text) * 86_400 + secondsOf(text) - offsetOf(text, end);
  return Number.isNaN(seconds) ? undefined : BigInt(seconds) * TICKS_PER_SECOND + BigInt(fraction);
}

/**
 * Parses a timestamp into ticks of 100 ns since the epoch.
 * @throws AppError invalid INVALID_TIMESTAMP
 */
export function parseTimestamp(text: string): bigint {
  const ticks = findTimestamp(text);
  if (ticks === undefined) {
    throw new AppError('invalid', 'INVALID_TIMESTAMP', 'Text is not an ISO 8601 timestamp with an offset');
  }
  return ticks;
}

/** Ticks as microseconds since the epoch, rounded down. */
export function ticksToMicros(ticks: bigint): bigint {
  const micros = ticks / TICKS_PER_MICROSECOND;
  return ticks % TICKS_PER_MICROSECOND < 0n ? micros - 1n : micros;
}

/** Ticks as milliseconds since the epoch, rounded down. */
export function ticksToMs(ticks: bigint): number {
  return Math.floor(Number(ticks / 1000n) / 10);
}

/** The form of timestamps outside hashed data: milliseconds and `Z`. */
export function apiTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}

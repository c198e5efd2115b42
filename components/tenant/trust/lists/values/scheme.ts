import { readableName } from '#core/encoding/readable.ts';
import { findTimestamp, ticksToMs } from '#core/encoding/timestamp.ts';
import { malformed } from './fault.ts';

const maxNameLength = 400;

/** The years 1 to 9999 of UTC, which every date here and in the database is of. */
const firstMs = Date.parse('0001-01-01T00:00:00Z');
const lastMs = Date.parse('9999-12-31T23:59:59.999Z');

/** Milliseconds of an xs:dateTime with a time zone, in the years 1 to 9999. @throws ListFault malformed */
export function parseTime(text: string, name: string): number {
  const ticks = findTimestamp(text);
  const ms = ticks === undefined ? Number.NaN : ticksToMs(ticks);
  if (!(ms >= firstMs && ms <= lastMs)) throw malformed(`${name} is no date and time with a time zone`);
  return ms;
}

/** A sequence number: from 1, and a safe integer. @throws ListFault malformed */
export function parseSequence(value: string | number, name: string): number {
  const number = typeof value === 'number' ? value : /^\d{1,16}$/.test(value) ? Number(value) : 0;
  if (!Number.isSafeInteger(number) || number < 1) throw malformed(`${name} is no number from 1`);
  return number;
}

/** Two letters. @throws ListFault malformed */
export function parseTerritory(text: string): string {
  if (!/^[A-Z]{2}$/.test(text)) throw malformed('the territory of the scheme has not two letters');
  return text;
}

/** The English name of several, or the first one, on one line. @throws ListFault malformed */
export function parseName(names: readonly { readonly lang: string; readonly value: string }[]): string {
  const chosen = names.find(({ lang }) => lang.toLowerCase() === 'en') ?? names[0];
  const text = chosen?.value.replaceAll(/\s+/g, ' ').trim();
  const name = readableName.min(1).max(maxNameLength).safeParse(text);
  if (!name.success) throw malformed('the operator of the scheme has no readable name');
  return name.data;
}

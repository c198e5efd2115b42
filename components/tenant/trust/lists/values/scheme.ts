import { readableName } from '#core/encoding/readable.ts';
import { malformed } from './fault.ts';

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
const maxNameLength = 400;

/** Milliseconds of an xs:dateTime with a time zone. @throws ListFault malformed */
export function parseTime(text: string, name: string): number {
  const ms = dateTime.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw malformed(`${name} is no date and time with a time zone`);
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

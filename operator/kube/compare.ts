import { createHash } from 'node:crypto';
import { isRecord } from './resource.ts';

/** JSON with sorted members and without undefined ones, so that equal values give equal texts. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((each) => canonicalText(each ?? null)).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value ?? null);
  const members = Object.keys(value)
    .filter((name) => value[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalText(value[name])}`);
  return `{${members.join(',')}}`;
}

/** 16 hex digits of the SHA-256 of the canonical text. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalText(value)).digest('hex').slice(0, 16);
}

/**
 * Whether `live` contains every field of `desired`; additional fields of `live` are ignored. Lists of named elements may
 * contain more elements; other lists are compared by position.
 */
export function contains(live: unknown, desired: unknown): boolean {
  if (desired === undefined || desired === null) return live === undefined || live === null;
  if (Array.isArray(desired)) return Array.isArray(live) && containsAll(live, desired);
  if (!isRecord(desired)) return live === desired;
  return isRecord(live) && Object.keys(desired).every((name) => contains(live[name], desired[name]));
}

function containsAll(live: readonly unknown[], desired: readonly unknown[]): boolean {
  const isNamed =
    desired.length > 0 && desired.every((each) => isRecord(each) && typeof each['name'] === 'string');
  if (!isNamed) {
    return live.length === desired.length && desired.every((each, place) => contains(live[place], each));
  }
  return desired.every((each) =>
    live.some(
      (other) => isRecord(other) && isRecord(each) && other['name'] === each['name'] && contains(other, each),
    ),
  );
}

import { createHash } from 'node:crypto';
import { isRecord } from './resource.ts';

/** JSON with members in order, so that equal values give equal texts; members that are undefined are left out. */
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
 * Whether `live` has everything that `wanted` says; what others added is not looked at. Lists whose members have names
 * may hold more than was wanted, other lists are compared place by place.
 */
export function contains(live: unknown, wanted: unknown): boolean {
  if (wanted === undefined || wanted === null) return live === undefined || live === null;
  if (Array.isArray(wanted)) return Array.isArray(live) && containsAll(live, wanted);
  if (!isRecord(wanted)) return live === wanted;
  return isRecord(live) && Object.keys(wanted).every((name) => contains(live[name], wanted[name]));
}

function containsAll(live: readonly unknown[], wanted: readonly unknown[]): boolean {
  const isNamed =
    wanted.length > 0 && wanted.every((each) => isRecord(each) && typeof each['name'] === 'string');
  if (!isNamed) {
    return live.length === wanted.length && wanted.every((each, place) => contains(live[place], each));
  }
  return wanted.every((each) =>
    live.some(
      (other) => isRecord(other) && isRecord(each) && other['name'] === each['name'] && contains(other, each),
    ),
  );
}

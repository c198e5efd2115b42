import { isJsonObject, type JsonObject } from '../encoding/json.ts';
import { structuralForm, structuralHash } from './hashes.ts';
import { jsonPointer } from './members.ts';

type Path = readonly (string | number)[];

export const CHANGE_TYPES = ['structural', 'documentation'] as const;
export type ChangeType = (typeof CHANGE_TYPES)[number];

/** Maximum number of pointers in one answer. */
export const MAX_POINTERS = 100;

/** Version of a publication among those of its blueprint. */
export interface BlueprintVersion {
  readonly major: number;
  readonly minor: number;
}

const FIRST: BlueprintVersion = { major: 1, minor: 0 };

/** Names or indexes of two containers of one kind; undefined for anything else. */
function membersOf(before: unknown, after: unknown): readonly (string | number)[] | undefined {
  if (Array.isArray(before) && Array.isArray(after)) {
    return Array.from({ length: Math.max(before.length, after.length) }, (_, index) => index);
  }
  if (!isJsonObject(before) || !isJsonObject(after)) return undefined;
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
}

function memberOf(value: unknown, name: string | number): unknown {
  const container = value as Readonly<Record<string | number, unknown>>;
  return Object.hasOwn(container, name) ? container[name] : undefined;
}

function* differences(before: unknown, after: unknown, path: Path): Generator<Path> {
  if (Object.is(before, after) || (before === 0 && after === 0)) return;
  const names = membersOf(before, after);
  if (names === undefined) {
    yield path;
    return;
  }
  for (const name of names)
    yield* differences(memberOf(before, name), memberOf(after, name), [...path, name]);
}

/** JSON Pointers of the innermost members that differ between two JSON values, in order, at most `most` of them. */
export function changedPointers(before: unknown, after: unknown, most = MAX_POINTERS): string[] {
  return differences(before, after, []).take(most).map(jsonPointer).toArray();
}

interface Classified {
  readonly changeType: ChangeType;
  readonly structuralHashCurrent: string;
  readonly structuralHashNew: string;
  /** JSON Pointers of the structural differences; arrays are compared by index. */
  readonly structuralFieldsChanged: readonly string[];
}

/** Classifies the change from the current definition to a new one. Throws like canonicalJson. */
export function classifyChange(current: JsonObject, wanted: JsonObject): Classified {
  const structuralHashCurrent = structuralHash(current);
  const structuralHashNew = structuralHash(wanted);
  return {
    changeType: structuralHashCurrent === structuralHashNew ? 'documentation' : 'structural',
    structuralHashCurrent,
    structuralHashNew,
    structuralFieldsChanged: changedPointers(structuralForm(current), structuralForm(wanted)),
  };
}

/**
 * The version of the next publication: a structural change makes the next major one, a change of text the next minor
 * one.
 */
export function nextVersion(current: BlueprintVersion | undefined, changeType: ChangeType): BlueprintVersion {
  if (current === undefined) return FIRST;
  const { major, minor } = current;
  return changeType === 'structural' ? { major: major + 1, minor: 0 } : { major, minor: minor + 1 };
}

/** `major.minor` */
export function versionText({ major, minor }: BlueprintVersion): string {
  return `${major}.${minor}`;
}

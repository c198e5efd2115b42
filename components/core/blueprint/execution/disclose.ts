import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import type { Action } from '../model/blueprint.ts';
import { EVERYTHING, findPath } from '../pointer.ts';

/** What a participant may read of an action's data. */
interface ParticipantDisclosure {
  readonly participantId: string;
  readonly data: JsonObject;
  /** Number of members at the top of `data`. */
  readonly fieldCount: number;
  /** The listed pointers that lead to a value. */
  readonly pointers: readonly string[];
}

/**
 * What each participant may read of the processed data (specification document 3, section 3): the values that its
 * pointers lead to, in the objects that contain them. Several disclosures to one participant are united. The sender
 * reads everything, and is first; a participant whose pointers lead to nothing is left out.
 */
export function disclose(
  { sender, disclosures }: Pick<Action, 'sender' | 'disclosures'>,
  processed: JsonObject,
): readonly ParticipantDisclosure[] {
  const listed = new Map<string, readonly string[]>();
  for (const { participantAddress: participantId, dataPointers } of disclosures) {
    listed.set(participantId, [...(listed.get(participantId) ?? []), ...dataPointers]);
  }
  listed.delete(sender);
  const others = [...listed].map(([participantId, pointers]) => ({
    participantId,
    ...discloseBy(pointers, processed),
  }));
  return [
    { participantId: sender, ...viewOf(processed, [EVERYTHING]) },
    ...others.filter(({ fieldCount }) => fieldCount > 0),
  ];
}

/** What pointers disclose of data; only objects are passed through. Pointers that lead to nothing are left out. */
export function discloseBy(
  pointers: readonly string[],
  data: JsonObject,
): Omit<ParticipantDisclosure, 'participantId'> {
  if (pointers.includes(EVERYTHING)) return viewOf(data, [EVERYTHING]);
  const leading = [...new Set(pointers)].filter((pointer) => hasValue(data, findPath(pointer)));
  const paths = leading.flatMap((pointer) => {
    const path = findPath(pointer);
    return path === undefined ? [] : [path];
  });
  return viewOf(select(data, paths), leading);
}

function viewOf(data: JsonObject, pointers: readonly string[]): Omit<ParticipantDisclosure, 'participantId'> {
  return { data, pointers, fieldCount: Object.keys(data).length };
}

function hasValue(data: unknown, path: readonly string[] | undefined): boolean {
  if (path === undefined) return false;
  const [name, ...rest] = path;
  if (name === undefined) return true;
  return isJsonObject(data) && Object.hasOwn(data, name) && hasValue(data[name], rest);
}

/** The members of an object that paths lead to, in its own order. Every path leads to a value. */
function select(data: JsonObject, paths: readonly (readonly string[])[]): JsonObject {
  const members = Object.entries(data).flatMap(([name, value]): [string, unknown][] => {
    const below = paths.filter((path) => path[0] === name).map((path) => path.slice(1));
    if (below.length === 0) return [];
    const isWhole = below.some((path) => path.length === 0) || !isJsonObject(value);
    return [[name, isWhole ? value : select(value, below)]];
  });
  return Object.fromEntries(members);
}

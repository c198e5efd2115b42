import { isRecord } from '../resource.ts';

type Tree = Record<string, unknown>;

const untracked = new Set(['apiVersion', 'kind', 'metadata.name', 'metadata.namespace', 'metadata.uid']);

/** Paths and values of all leaves of a configuration; a list is one value. */
function leavesOf(value: unknown, path = ''): Map<string, unknown> {
  const leaves = new Map<string, unknown>();
  if (!isRecord(value) || Object.keys(value).length === 0)
    return path === '' ? leaves : leaves.set(path, value);
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const below = path === '' ? name : `${path}.${name.replaceAll('.', '~')}`;
    if (untracked.has(below)) continue;
    for (const [leaf, each] of leavesOf(member, below)) leaves.set(leaf, each);
  }
  return leaves;
}

function parts(path: string): string[] {
  return path.split('.').map((part) => part.replaceAll('~', '.'));
}

function setAt(tree: Tree, path: string, value: unknown): void {
  const names = parts(path);
  const last = names.pop() ?? '';
  let place = tree;
  for (const name of names) {
    const below = place[name];
    const next: Tree = isRecord(below) ? { ...below } : {};
    place[name] = next;
    place = next;
  }
  place[last] = value;
}

function removeAt(tree: Tree, path: string): void {
  const names = parts(path);
  const last = names.pop() ?? '';
  let place = tree;
  for (const name of names) {
    const below = place[name];
    if (!isRecord(below)) return;
    const next: Tree = { ...below };
    place[name] = next;
    place = next;
  }
  delete place[last];
}

/** The fields of a manager in the format of `fieldsV1`. */
export function fieldsOf(paths: Iterable<string>): Tree {
  const tree: Tree = {};
  for (const path of paths) {
    let place = tree;
    for (const name of parts(path)) {
      const below: Tree = (place[`f:${name}`] ?? {}) as Tree;
      place[`f:${name}`] = below;
      place = below;
    }
  }
  return tree;
}

/** Fields of one object by manager. */
export type Ownership = Map<string, ReadonlySet<string>>;

/** The object after a forced apply; updates the ownership in place. */
export function mergeApplied(live: Tree, applied: unknown, manager: string, owners: Ownership): Tree {
  const merged = structuredClone(live);
  const leaves = leavesOf(applied);
  for (const [other, paths] of owners) {
    if (other !== manager) owners.set(other, new Set([...paths].filter((path) => !leaves.has(path))));
  }
  const before = owners.get(manager) ?? new Set();
  for (const path of before) {
    const isOthers = [...owners].some(([other, paths]) => other !== manager && paths.has(path));
    if (!leaves.has(path) && !isOthers) removeAt(merged, path);
  }
  for (const [path, value] of leaves) setAt(merged, path, structuredClone(value));
  owners.set(manager, new Set(leaves.keys()));
  return merged;
}

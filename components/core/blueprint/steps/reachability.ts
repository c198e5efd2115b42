/** A set of indexes of actions, one bit each. */
export type IndexSet = Uint32Array;

const WORD_BITS = 32;

/** Whether an index is in a set. */
export function isMember(set: IndexSet, index: number): boolean {
  return (((set[index >>> 5] ?? 0) >>> (index & 31)) & 1) === 1;
}

/** Adds a member to a set. */
export function include(set: IndexSet, index: number): void {
  set[index >>> 5] = (set[index >>> 5] ?? 0) | (1 << (index & 31));
}

/** The set of some indexes below `size`. */
export function indexSet(size: number, indexes: Iterable<number>): IndexSet {
  const set = new Uint32Array(Math.ceil(size / WORD_BITS));
  for (const index of indexes) include(set, index);
  return set;
}

/** Position of the lowest bit that is set in a word other than 0. */
function lowestBit(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}

/** The members of a set, ascending. */
export function* membersOf(set: IndexSet): Generator<number> {
  for (let word = 0; word < set.length; word += 1) {
    let bits = set[word] ?? 0;
    while (bits !== 0) {
      yield word * WORD_BITS + lowestBit(bits);
      bits &= bits - 1;
    }
  }
}

/** Adds the members of another set; returns those that are new, ascending. */
export function includeNew(set: IndexSet, other: IndexSet): number[] {
  const added: number[] = [];
  for (let word = 0; word < set.length; word += 1) {
    const before = set[word] ?? 0;
    let bits = (other[word] ?? 0) & ~before;
    set[word] = before | bits;
    for (; bits !== 0; bits &= bits - 1) added.push(word * WORD_BITS + lowestBit(bits));
  }
  return added;
}

/** The members that two or more of the sets have in common. */
export function sharedMembers(size: number, sets: readonly IndexSet[]): IndexSet {
  return tally(size, sets).more;
}

/** The members that exactly one of the sets has. */
export function exclusiveMembers(size: number, sets: readonly IndexSet[]): IndexSet {
  const { once, more } = tally(size, sets);
  return without(once, more);
}

/** The members that at least one of the sets has, and those that two or more have. */
function tally(size: number, sets: readonly IndexSet[]) {
  const once = indexSet(size, []);
  const more = indexSet(size, []);
  for (const set of sets) {
    for (let word = 0; word < once.length; word += 1) {
      const bits = set[word] ?? 0;
      more[word] = (more[word] ?? 0) | ((once[word] ?? 0) & bits);
      once[word] = (once[word] ?? 0) | bits;
    }
  }
  return { once, more };
}

/** The members of a set that are not in another. */
export function without(set: IndexSet, other: IndexSet): IndexSet {
  const rest = new Uint32Array(set.length);
  for (let word = 0; word < rest.length; word += 1) rest[word] = (set[word] ?? 0) & ~(other[word] ?? 0);
  return rest;
}

/** Adds the members of another set. */
export function includeAll(set: IndexSet, other: IndexSet): void {
  for (let word = 0; word < set.length; word += 1) set[word] = (set[word] ?? 0) | (other[word] ?? 0);
}

/** A directed graph over indexes: the successors of each. */
export type Graph = readonly IndexSet[];

/** The graph with every edge turned round. */
export function reversed(graph: Graph): Graph {
  const back = graph.map(() => indexSet(graph.length, []));
  graph.forEach((successors, from) => {
    for (const to of membersOf(successors)) {
      const set = back[to];
      if (set !== undefined) include(set, from);
    }
  });
  return back;
}

/**
 * The indexes that can be reached from the starts without passing `avoided`; the starts are among them, `avoided` never
 * is. Each index is visited once, so the cost is at most the square of their number, in words of 32 bits.
 * @param known what can be reached from single indexes without passing `avoided`: the search ends there
 */
export function reachable(
  graph: Graph,
  starts: Iterable<number>,
  avoided: number,
  known: ReadonlyMap<number, IndexSet> = new Map(),
): IndexSet {
  const found = indexSet(graph.length, []);
  const open: number[] = [];
  const visit = (index: number) => {
    if (index === avoided || isMember(found, index)) return;
    include(found, index);
    const behind = known.get(index);
    if (behind === undefined) open.push(index);
    else includeAll(found, behind);
  };
  for (const start of starts) visit(start);
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    const successors = graph[index] ?? found;
    for (let word = 0; word < found.length; word += 1) {
      let unseen = (successors[word] ?? 0) & ~(found[word] ?? 0);
      while (unseen !== 0) {
        visit(word * WORD_BITS + lowestBit(unseen));
        // What was known behind one may hold others; `avoided` stays unseen and is visited once.
        unseen &= (unseen - 1) & ~(found[word] ?? 0);
      }
    }
  }
  return found;
}

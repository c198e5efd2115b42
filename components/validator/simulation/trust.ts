/** What the sets of one register are, and may become by what is under way. */
export interface Sets {
  /** Every V(height) that is known so far. */
  known(): Iterable<readonly [height: number, members: readonly string[]]>;
  /** The set after the docket that was stored last. */
  current(): readonly string[];
  /** Changes that were offered and are not sealed: each of them may take effect, or never. */
  underWay(): readonly Change[];
}

export interface Change {
  readonly kind: 'add' | 'remove';
  readonly validatorId: string;
}

/** Heights by register, first and last included. */
export type Heights = ReadonlyMap<string, { readonly from: number; readonly to: number }>;

/** Identities that may do anything, and how many of them the sets of the registers bear at each height (f of n). */
export class Trust {
  readonly #faulty = new Set<string>();
  /** Members that sign around their guard. */
  readonly #byzantine = new Set<string>();
  /** Of members that forgot what they signed before they left: the heights of each register that this is about. */
  readonly #forgot = new Map<string, Heights>();
  readonly #registers = new Map<string, Sets>();

  watch(registerId: string, sets: Sets): void {
    this.#registers.set(registerId, sets);
  }

  isFaulty(validatorId: string): boolean {
    return this.#faulty.has(validatorId);
  }

  isByzantine(validatorId: string): boolean {
    return this.#byzantine.has(validatorId);
  }

  /** From now on the member may do anything; one with a guarded key still never signs twice for a position. */
  distrust(validatorId: string, isByzantine: boolean): void {
    this.#faulty.add(validatorId);
    if (isByzantine) this.#byzantine.add(validatorId);
  }

  /** What it signed at these heights it may not know any more; in what comes later it keeps to the rules. */
  distrustAt(validatorId: string, heights: Heights): void {
    this.#forgot.set(validatorId, heights);
  }

  /** Whether the member came back without all that it had signed. */
  hasForgotten(validatorId: string): boolean {
    return this.#forgot.has(validatorId);
  }

  /** Whether the member may have voted for anything at that height. */
  liesAt(validatorId: string, registerId: string, height: number): boolean {
    if (this.#faulty.has(validatorId)) return true;
    const forgotten = this.#forgot.get(validatorId)?.get(registerId);
    return forgotten !== undefined && forgotten.from <= height && height <= forgotten.to;
  }

  /** Whether a member is in no set, and comes into none by what is under way. */
  isOutside(validatorId: string): boolean {
    return [...this.#registers.values()].every((sets) => {
      const { most } = furthest(sets);
      return !most.has(validatorId);
    });
  }

  /** Whether one more member may lie from now on, whatever of the changes under way takes effect. */
  bears(validatorId: string): boolean {
    return [...this.#registers].every(([registerId, sets]) => {
      const lies = (each: string, height: number) =>
        each === validatorId || this.liesAt(each, registerId, height);
      const past = [...sets.known()].every(([height, members]) =>
        isBorne(members, members, (each) => lies(each, height)),
      );
      return past && this.#bearsChange(registerId, undefined, validatorId);
    });
  }

  /** Whether a member may have forgotten what it signed at these heights. */
  bearsAt(validatorId: string, heights: Heights): boolean {
    return [...heights].every(([registerId, { from, to }]) => {
      const known = this.#registers.get(registerId)?.known() ?? [];
      return [...known].every(([height, members]) => {
        const lies = (each: string) => each === validatorId || this.liesAt(each, registerId, height);
        return height < from || height > to || isBorne(members, members, lies);
      });
    });
  }

  /** Whether a register bears one more change, in whatever order it and those under way take effect. */
  bearsChange(registerId: string, change: Change): boolean {
    return this.#bearsChange(registerId, change, undefined);
  }

  #bearsChange(registerId: string, change: Change | undefined, liar: string | undefined): boolean {
    const sets = this.#registers.get(registerId);
    if (sets === undefined) return false;
    const { least, most } = furthest(sets, change);
    return isBorne(most, least, (each) => each === liar || this.#faulty.has(each));
  }
}

/** The members that surely remain, and all that may be there. */
function furthest(sets: Sets, change?: Change) {
  const least = new Set(sets.current());
  const most = new Set(sets.current());
  for (const { kind, validatorId } of [...sets.underWay(), ...(change ? [change] : [])]) {
    if (kind === 'add') most.add(validatorId);
    else least.delete(validatorId);
  }
  return { least, most };
}

/** F <= floor((F + H - 1) / 3) with every liar that may be there and only the honest that surely are. */
function isBorne(most: Iterable<string>, least: Iterable<string>, lies: (id: string) => boolean): boolean {
  const liars = [...most].filter(lies).length;
  const honest = [...least].filter((each) => !lies(each)).length;
  return liars === 0 || 2 * liars + 1 <= honest;
}

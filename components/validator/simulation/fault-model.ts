/** The sets of one register, and what pending changes may make of them. */
export interface Sets {
  /** Every validator set known so far. */
  known(): Iterable<readonly [height: number, members: readonly string[]]>;
  /** The set after the docket that was stored last. */
  current(): readonly string[];
  /** Changes that were submitted and are not sealed: each may or may not take effect. */
  underWay(): readonly Change[];
}

export interface Change {
  readonly kind: 'add' | 'remove';
  readonly validatorId: string;
}

/** Heights by register, first and last included. */
export type Heights = ReadonlyMap<string, { readonly from: number; readonly to: number }>;

/** Identities that may behave arbitrarily, and the bound f of n of every set at every height. */
export class Trust {
  readonly #faulty = new Set<string>();
  /** Members that sign without their guard. */
  readonly #byzantine = new Set<string>();
  /** Members that forgot what they signed before they left: the affected heights of each register. */
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

  /** Marks a member as faulty from now on; with a guarded key it still never signs twice for a position. */
  distrust(validatorId: string, isByzantine: boolean): void {
    this.#faulty.add(validatorId);
    if (isByzantine) this.#byzantine.add(validatorId);
  }

  /** The member may have forgotten what it signed at these heights; at later heights it is correct. */
  distrustAt(validatorId: string, heights: Heights): void {
    this.#forgot.set(validatorId, heights);
  }

  /** Whether the member came back without all of its state. */
  hasForgotten(validatorId: string): boolean {
    return this.#forgot.has(validatorId);
  }

  /** Whether the member may have voted for anything at that height. */
  liesAt(validatorId: string, registerId: string, height: number): boolean {
    if (this.#faulty.has(validatorId)) return true;
    const forgotten = this.#forgot.get(validatorId)?.get(registerId);
    return forgotten !== undefined && forgotten.from <= height && height <= forgotten.to;
  }

  /** Whether a member is in no set and joins none by a pending change. */
  isOutside(validatorId: string): boolean {
    return [...this.#registers.values()].every((sets) => {
      const { most } = furthest(sets);
      return !most.has(validatorId);
    });
  }

  /** Whether one more member may become faulty, whichever pending changes take effect. */
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

  /** Whether a register tolerates one more change, in any order with the pending ones. */
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

/** The members that certainly remain, and all that may be there. */
function furthest(sets: Sets, change?: Change) {
  const least = new Set(sets.current());
  const most = new Set(sets.current());
  for (const { kind, validatorId } of [...sets.underWay(), ...(change ? [change] : [])]) {
    if (kind === 'add') most.add(validatorId);
    else least.delete(validatorId);
  }
  return { least, most };
}

/** F <= floor((F + H - 1) / 3), with every possible faulty member and only the certain correct ones. */
function isBorne(most: Iterable<string>, least: Iterable<string>, lies: (id: string) => boolean): boolean {
  const liars = [...most].filter(lies).length;
  const honest = [...least].filter((each) => !lies(each)).length;
  return liars === 0 || 2 * liars + 1 <= honest;
}

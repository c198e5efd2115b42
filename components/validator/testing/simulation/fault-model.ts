/** The sets of one register, and what pending changes may make of them. */
export interface RegisterSets {
  /** Every validator set known so far. */
  known(): Iterable<readonly [height: number, members: readonly string[]]>;
  /** The set after the docket that was stored last. */
  current(): readonly string[];
  /** Changes that were submitted and are not sealed: each may or may not take effect. */
  pending(): readonly Change[];
}

export interface Change {
  readonly kind: 'add' | 'remove';
  readonly validatorId: string;
}

/** Heights by register, first and last included. */
export type Heights = ReadonlyMap<string, { readonly from: number; readonly to: number }>;

/** Identities that may behave arbitrarily, and the bound f of n of every set at every height. */
export class FaultModel {
  readonly #faulty = new Set<string>();
  /** Members that sign without their guard. */
  readonly #byzantine = new Set<string>();
  /** Members that forgot what they signed before they left: the affected heights of each register. */
  readonly #forgot = new Map<string, Heights>();
  readonly #registers = new Map<string, RegisterSets>();

  watch(registerId: string, sets: RegisterSets): void {
    this.#registers.set(registerId, sets);
  }

  isFaulty(validatorId: string): boolean {
    return this.#faulty.has(validatorId);
  }

  isByzantine(validatorId: string): boolean {
    return this.#byzantine.has(validatorId);
  }

  /** Marks a member as faulty from now on; with a guarded key it still never signs twice for a position. */
  markFaulty(validatorId: string, isByzantine: boolean): void {
    this.#faulty.add(validatorId);
    if (isByzantine) this.#byzantine.add(validatorId);
  }

  /** The member may have forgotten what it signed at these heights; at later heights it is correct. */
  markFaultyAt(validatorId: string, heights: Heights): void {
    this.#forgot.set(validatorId, heights);
  }

  /** Whether the member came back without all of its state. */
  hasLostState(validatorId: string): boolean {
    return this.#forgot.has(validatorId);
  }

  /** Whether the member may have voted for anything at that height. */
  isFaultyAt(validatorId: string, registerId: string, height: number): boolean {
    if (this.#faulty.has(validatorId)) return true;
    const forgotten = this.#forgot.get(validatorId)?.get(registerId);
    return forgotten !== undefined && forgotten.from <= height && height <= forgotten.to;
  }

  /** Whether a member is in no set and joins none by a pending change. */
  isOutside(validatorId: string): boolean {
    return [...this.#registers.values()].every((sets) => {
      const { possible } = mostAdvanced(sets);
      return !possible.has(validatorId);
    });
  }

  /** Whether one more member may become faulty, whichever pending changes take effect. */
  tolerates(validatorId: string): boolean {
    return [...this.#registers].every(([registerId, sets]) => {
      const lies = (each: string, height: number) =>
        each === validatorId || this.isFaultyAt(each, registerId, height);
      const past = [...sets.known()].every(([height, members]) =>
        isTolerated(members, members, (each) => lies(each, height)),
      );
      return past && this.#toleratesChange(registerId, undefined, validatorId);
    });
  }

  /** Whether a member may have forgotten what it signed at these heights. */
  toleratesAt(validatorId: string, heights: Heights): boolean {
    return [...heights].every(([registerId, { from, to }]) => {
      const known = this.#registers.get(registerId)?.known() ?? [];
      return [...known].every(([height, members]) => {
        const lies = (each: string) => each === validatorId || this.isFaultyAt(each, registerId, height);
        return height < from || height > to || isTolerated(members, members, lies);
      });
    });
  }

  /** Whether a register tolerates one more change, in any order with the pending ones. */
  toleratesChange(registerId: string, change: Change): boolean {
    return this.#toleratesChange(registerId, change, undefined);
  }

  #toleratesChange(registerId: string, change: Change | undefined, equivocator: string | undefined): boolean {
    const sets = this.#registers.get(registerId);
    if (sets === undefined) return false;
    const { certain, possible } = mostAdvanced(sets, change);
    return isTolerated(possible, certain, (each) => each === equivocator || this.#faulty.has(each));
  }
}

/** The members that certainly remain, and all that may be there. */
function mostAdvanced(sets: RegisterSets, change?: Change) {
  const certain = new Set(sets.current());
  const possible = new Set(sets.current());
  for (const { kind, validatorId } of [...sets.pending(), ...(change ? [change] : [])]) {
    if (kind === 'add') possible.add(validatorId);
    else certain.delete(validatorId);
  }
  return { certain, possible };
}

/** F <= floor((F + H - 1) / 3), with every possible faulty member and only the certain correct ones. */
function isTolerated(
  possible: Iterable<string>,
  certain: Iterable<string>,
  lies: (id: string) => boolean,
): boolean {
  const liars = [...possible].filter(lies).length;
  const honest = [...certain].filter((each) => !lies(each)).length;
  return liars === 0 || 2 * liars + 1 <= honest;
}

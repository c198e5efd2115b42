/** A register at one of its members, and who of the set was heard when. */
export interface Place {
  readonly registerId: string;
  readonly quorum: number;
  /** Every member with the time when it was heard last; this one is heard now. */
  readonly members: readonly { readonly heardAtMs: number }[];
}

/** Five heartbeats that did not come. */
const silentMs = 5_000;

/**
 * A member that hears no quorum may be behind a cut: others may go on without it, and what it tells may be old.
 * @throws Error with the first register of which no quorum was heard lately, and the number of the others
 */
export function assertInTouch(places: readonly Place[], nowMs: number): void {
  const heard = ({ members }: Place) =>
    members.filter(({ heardAtMs }) => nowMs - heardAtMs <= silentMs).length;
  const [first, ...more] = places.filter((place) => heard(place) < place.quorum);
  if (first === undefined) return;
  const others = more.length === 0 ? '' : `; ${more.length} more like it`;
  const { registerId, quorum, members } = first;
  throw new Error(
    `stale: of register ${registerId} ${heard(first)} of ${members.length} members were heard in the last ${silentMs / 1_000} s and ${quorum} must agree${others}`,
  );
}

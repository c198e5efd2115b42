import { podName, validatorId } from '../../api/names.ts';
import type { LeftClaim, SetFacts } from './facts.ts';
import { sightings } from './quorum.ts';

/** The volume of a member that left is kept this long, in case it comes back (notes/ledger.md chapter 5). */
export const KEEP_LEFT_MS = 7 * 24 * 3_600_000;

/** What is done about the volume of a member that is gone. */
export type LeftAct =
  /** The time of its leaving is noted on the claim; `undefined` takes the note away. */
  | { readonly kind: 'note'; readonly claim: LeftClaim; readonly leftAtMs: number | undefined }
  | { readonly kind: 'discard'; readonly claim: LeftClaim };

/**
 * Volumes of members that left. A note is made only of a member that this set has seen leave, so that what a former set
 * or a hand left behind is nobody's to delete; it goes when the member is wanted again. Seven days after the note the
 * volume goes, and only while it is certain that no register lists its member.
 */
export function planLeft(facts: SetFacts): readonly LeftAct[] {
  const { set, statefulSet, leftClaims = [], nowMs } = facts;
  if (set.spec.suspend || statefulSet === undefined) return [];
  return leftClaims.flatMap((claim): readonly LeftAct[] => {
    const { ordinal, leftAtMs } = claim;
    if (isWanted(facts, ordinal)) {
      return leftAtMs === undefined ? [] : [{ kind: 'note', claim, leftAtMs: undefined }];
    }
    if (leftAtMs === undefined) {
      return isLeaver(facts, ordinal) ? [{ kind: 'note', claim, leftAtMs: nowMs }] : [];
    }
    const isDue = nowMs - leftAtMs >= KEEP_LEFT_MS;
    return isDue && isForgotten(facts, ordinal) ? [{ kind: 'discard', claim }] : [];
  });
}

/** Whether a pod of this ordinal is wanted, now or at the end of a walk. */
function isWanted({ set, statefulSet, members }: SetFacts, ordinal: number): boolean {
  const there = members.some((each) => each.ordinal === ordinal && each.pod !== undefined);
  return there || ordinal < set.spec.replicas || ordinal < (statefulSet?.replicas ?? 0);
}

/** Whether the status still names it: it has just left. */
function isLeaver({ set }: SetFacts, ordinal: number): boolean {
  return set.status.members?.some((each) => each.ordinal === ordinal) === true;
}

/** Whether every Register of the set is told about, and none lists this member. */
function isForgotten({ set, members, registers, blind }: SetFacts, ordinal: number): boolean {
  if (blind !== undefined) return false;
  const seen = sightings(members);
  const id = validatorId(podName(set.metadata.name, ordinal));
  const isListed = [...seen.values()].flat().some(({ report }) => report.members.includes(id));
  const isUnseen = registers.some(({ registerId }) => registerId !== undefined && !seen.has(registerId));
  return !isListed && !isUnseen && members.some(({ report }) => report !== undefined);
}

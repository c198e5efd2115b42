import { podName, validatorId } from '../../api/names.ts';
import type { RetainedClaim, SetFacts } from './facts.ts';
import { reportsByRegister } from './quorum.ts';

/** The volume of a member that left is kept this long, in case it comes back (notes/ledger.md chapter 5). */
export const RETENTION_MS = 7 * 24 * 3_600_000;

/** What is done about the volume of a member that is gone. */
export type ClaimAction =
  /** The time of its leaving is noted on the claim; `undefined` takes the note away. */
  | { readonly kind: 'note'; readonly claim: RetainedClaim; readonly leftAtMs: number | undefined }
  | { readonly kind: 'discard'; readonly claim: RetainedClaim };

/**
 * Volumes of members that left. A note is made only of a member that this set has seen leave, so that what a former set
 * or a hand left behind is nobody's to delete; it goes when the member is wanted again. Seven days after the note the
 * volume goes, and only while it is certain that no register lists its member.
 */
export function planRetainedClaims(facts: SetFacts): readonly ClaimAction[] {
  const { set, statefulSet, retainedClaims = [], nowMs } = facts;
  if (set.spec.suspend || statefulSet === undefined) return [];
  return retainedClaims.flatMap((claim): readonly ClaimAction[] => {
    const { ordinal, leftAtMs } = claim;
    if (isDesired(facts, ordinal)) {
      return leftAtMs === undefined ? [] : [{ kind: 'note', claim, leftAtMs: undefined }];
    }
    if (leftAtMs === undefined) {
      return isJustRemoved(facts, ordinal) ? [{ kind: 'note', claim, leftAtMs: nowMs }] : [];
    }
    const isDue = nowMs - leftAtMs >= RETENTION_MS;
    return isDue && isUnlistedEverywhere(facts, ordinal) ? [{ kind: 'discard', claim }] : [];
  });
}

/** Whether a pod of this ordinal is wanted, now or at the end of a walk. */
function isDesired({ set, statefulSet, members }: SetFacts, ordinal: number): boolean {
  const there = members.some((each) => each.ordinal === ordinal && each.pod !== undefined);
  return there || ordinal < set.spec.replicas || ordinal < (statefulSet?.replicas ?? 0);
}

/** Whether the status still names it: it has just left. */
function isJustRemoved({ set }: SetFacts, ordinal: number): boolean {
  return set.status.members?.some((each) => each.ordinal === ordinal) === true;
}

/** Whether every Register of the set is told about, and none lists this member. */
function isUnlistedEverywhere({ set, members, registers, unreachable }: SetFacts, ordinal: number): boolean {
  if (unreachable !== undefined) return false;
  const seen = reportsByRegister(members);
  const id = validatorId(podName(set.metadata.name, ordinal));
  const isListed = [...seen.values()].flat().some(({ report }) => report.members.includes(id));
  const isUnseen = registers.some(({ registerId }) => registerId !== undefined && !seen.has(registerId));
  return !isListed && !isUnseen && members.some(({ report }) => report !== undefined);
}

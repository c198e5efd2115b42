import { podName, validatorId } from '../../api/names.ts';
import type { RetainedClaim, SetFacts } from './facts.ts';
import { reportsByRegister } from './quorum.ts';

/** Retention of the volume of a removed member, in case the set is scaled up again. */
export const retentionMs = 7 * 24 * 3_600_000;

/** Action on the volume of a removed member. */
export type ClaimAction =
  /** Sets the left-at annotation; `undefined` removes it. */
  | { readonly kind: 'note'; readonly claim: RetainedClaim; readonly leftAtMs: number | undefined }
  | { readonly kind: 'discard'; readonly claim: RetainedClaim };

/**
 * Plans the retention of volumes of removed members. Only a member in the status of this set is annotated, so that claims
 * of an earlier set or of a person are never deleted. The annotation is removed when the member is desired again. Seven
 * days after it the claim is deleted, if certainly no register lists the member.
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
    const isDue = nowMs - leftAtMs >= retentionMs;
    return isDue && isUnlistedEverywhere(facts, ordinal) ? [{ kind: 'discard', claim }] : [];
  });
}

/** Whether a pod of this ordinal exists or is desired. */
function isDesired({ set, statefulSet, members }: SetFacts, ordinal: number): boolean {
  const hasPod = members.some((each) => each.ordinal === ordinal && each.pod !== undefined);
  return hasPod || ordinal < set.spec.replicas || ordinal < (statefulSet?.replicas ?? 0);
}

/** Whether the status still lists the member, so that its removal is recent. */
function isJustRemoved({ set }: SetFacts, ordinal: number): boolean {
  return set.status.members?.some((each) => each.ordinal === ordinal) === true;
}

/** Whether every Register of the set is reported and none lists this member. */
function isUnlistedEverywhere({ set, members, registers, unreachable }: SetFacts, ordinal: number): boolean {
  if (unreachable !== undefined) return false;
  const seen = reportsByRegister(members);
  const id = validatorId(podName(set.metadata.name, ordinal));
  const isListed = [...seen.values()].flat().some(({ report }) => report.members.includes(id));
  const isUnseen = registers.some(({ registerId }) => registerId !== undefined && !seen.has(registerId));
  return !isListed && !isUnseen && members.some(({ report }) => report !== undefined);
}

import { compareQuantities } from '../../api/quantity.ts';
import type { ClaimFacts, MemberFacts, SetFacts } from './facts.ts';

/** Expansion of volumes. It does not depend on the state of pods, because a full volume breaks its pod. */
export interface Growth {
  /** Claims that request less than the spec. */
  readonly resize: readonly ClaimFacts[];
  /** All claims request the new size and the StatefulSet has the old one in its claim template. */
  readonly recreate: boolean;
  /** Pods whose volumes do not have the new size yet. */
  readonly growing: readonly string[];
}

const resizing = new Set(['Resizing', 'FileSystemResizePending']);

function isSmaller(quantity: string | undefined, desired: string): boolean {
  return quantity !== undefined && compareQuantities(quantity, desired) < 0;
}

/** Whether a member's volume is being expanded. */
export function isGrowing({ claim }: MemberFacts, size: string): boolean {
  if (claim === undefined) return false;
  return isSmaller(claim.capacity, size) || claim.conditions.some((each) => resizing.has(each));
}

/** Plans claims first, then the StatefulSet: its claim template is immutable, so it must be recreated. */
export function planGrowth({ set, members, statefulSet }: SetFacts): Growth {
  const { size } = set.spec.storage;
  const claims = members.flatMap(({ claim }) => claim ?? []);
  const resize = claims.filter(({ requested }) => isSmaller(requested, size));
  const isOld = isSmaller(statefulSet?.claimSize, size);
  const growing = members.filter((each) => isGrowing(each, size)).map(({ name }) => name);
  return { resize, recreate: isOld && resize.length === 0, growing };
}

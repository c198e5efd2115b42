import { compareQuantities } from '../../api/quantity.ts';
import type { ClaimFacts, MemberFacts, SetFacts } from './facts.ts';

/** What makes volumes grow. It looks at no pod: a full volume is why its pod is not well. */
export interface Growth {
  /** Claims that ask for less than the spec. */
  readonly resize: readonly ClaimFacts[];
  /** The StatefulSet has the former size in its template and all claims ask for the new one. */
  readonly recreate: boolean;
  /** Pods whose volumes are not as large yet. */
  readonly growing: readonly string[];
}

const resizing = new Set(['Resizing', 'FileSystemResizePending']);

function isSmaller(quantity: string | undefined, wanted: string): boolean {
  return quantity !== undefined && compareQuantities(quantity, wanted) < 0;
}

/** Whether a member's volume is on its way to another size. */
export function isGrowing({ claim }: MemberFacts, size: string): boolean {
  if (claim === undefined) return false;
  return isSmaller(claim.capacity, size) || claim.conditions.some((each) => resizing.has(each));
}

/** Claims first, then the template: the API server lets nobody change the template of a StatefulSet's claims. */
export function planGrowth({ set, members, statefulSet }: SetFacts): Growth {
  const { size } = set.spec.storage;
  const claims = members.flatMap(({ claim }) => claim ?? []);
  const resize = claims.filter(({ requested }) => isSmaller(requested, size));
  const isOld = isSmaller(statefulSet?.claimSize, size);
  const growing = members.filter((each) => isGrowing(each, size)).map(({ name }) => name);
  return { resize, recreate: isOld && resize.length === 0, growing };
}

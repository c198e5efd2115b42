/** A lost answer may be asked for again this long after the rotation. */
export const repeatWindowMs = 10_000;

export interface FamilyState {
  readonly generation: number;
  readonly lastRotatedAtMs: number;
  readonly expiresAtMs: number;
  readonly revoked: boolean;
}

/** rotate: next generation · repeat: hand out the same successor again · reuse: somebody has a copy · dead: nothing to do. */
export type RotationVerdict = 'rotate' | 'repeat' | 'reuse' | 'dead';

/**
 * RFC 9700 section 2.2.2. The successor of the previous generation is unused as long as the family has not moved past
 * it, so one number tells a lost answer from a copied token.
 */
export function judgeRotation(presented: number, family: FamilyState, nowMs: number): RotationVerdict {
  if (family.revoked || nowMs >= family.expiresAtMs) return 'dead';
  if (presented === family.generation) return 'rotate';
  const isPrevious = presented === family.generation - 1;
  return isPrevious && nowMs - family.lastRotatedAtMs <= repeatWindowMs ? 'repeat' : 'reuse';
}

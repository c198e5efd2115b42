/** Time after the rotation in which a lost answer is repeated. */
const repeatWindowMs = 10_000;

export interface FamilyState {
  readonly generation: number;
  readonly lastRotatedAtMs: number;
  readonly expiresAtMs: number;
  readonly revoked: boolean;
}

/**
 * rotate: next generation · repeat: the same successor again · reuse: the token was copied · dead: the family has
 * ended.
 */
type RotationResult = 'rotate' | 'repeat' | 'reuse' | 'dead';

/**
 * RFC 9700 section 2.2.2. The successor of the previous generation is unused until the family advances past it, so the
 * generation number distinguishes a lost answer from a copied token.
 */
export function judgeRotation(presented: number, family: FamilyState, nowMs: number): RotationResult {
  if (family.revoked || nowMs >= family.expiresAtMs) return 'dead';
  if (presented === family.generation) return 'rotate';
  const isPrevious = presented === family.generation - 1;
  return isPrevious && nowMs - family.lastRotatedAtMs <= repeatWindowMs ? 'repeat' : 'reuse';
}

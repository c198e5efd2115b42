export type RevocationKind = 'token' | 'family' | 'identity' | 'platform_user' | 'organization';

/** Which tokens are dead: one by its jti, a refresh family by its sid, or all that were issued up to an instant. */
export interface Revocation {
  readonly kind: RevocationKind;
  readonly key: string;
  readonly notBeforeMs: number;
  /** When no living token can match any more. */
  readonly expiresAtMs: number;
}

/** Place in the log: (transaction id, sequence). */
export interface RevocationCursor {
  readonly transactionId: bigint;
  readonly sequence: bigint;
}

export const logStart: RevocationCursor = { transactionId: 0n, sequence: 0n };

/** Longest life of any access token (a service token of 8 h) with clock skew on top. */
export const longestTokenLifeMs = 28_800_000 + 60_000;

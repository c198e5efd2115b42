import type { RevocationCursor } from '#kit/auth/auth.ts';

/** The place in the log before everything. */
export const logStart: RevocationCursor = { transactionId: 0n, sequence: 0n };

/** Longest life of any access token (a service token of 8 h) with clock skew on top. */
export const longestTokenLifeMs = 28_800_000 + 60_000;

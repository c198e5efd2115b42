import type { RevocationCursor } from '#kit/auth/auth.ts';

/** The cursor before the first entry of the log. */
export const logStart: RevocationCursor = { transactionId: 0n, sequence: 0n };

/** The longest lifetime of an access token (8 h for a service token) plus clock skew. */
export const longestTokenLifeMs = 28_800_000 + 60_000;

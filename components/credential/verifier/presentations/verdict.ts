import type { JsonObject } from '#core/encoding/json.ts';
import type { TrustDecision } from '#core/trust/evaluate.ts';

export type StatusResult = 'Valid' | 'Revoked' | 'Suspended' | 'Unavailable' | 'NotPresent';

interface ResultError {
  readonly code: string;
  readonly message: string;
  /** JSON Pointer into the claims. */
  readonly field?: string | undefined;
}

/** The verdict about a presentation of a query. */
export interface QueryVerdict {
  readonly isValid: boolean;
  readonly errors: readonly ResultError[];
  readonly issuer: string | null;
  readonly holderKeyVerified: boolean;
  readonly x5cChainValid: boolean;
  readonly statusCheckResult: StatusResult;
  readonly trust: TrustDecision | undefined;
}

/** A verdict with the claims that it is about. */
export interface JudgedQuery {
  readonly verdict: QueryVerdict;
  readonly claims: JsonObject;
}

/** What a trust decision says, as results show it. */
export function presentTrust(trust: TrustDecision | undefined) {
  if (trust === undefined) return null;
  return {
    decision: trust.isTrusted ? ('Trusted' as const) : ('NotTrusted' as const),
    reason: trust.reason ?? null,
    assuranceLevel: trust.assuranceLevel ?? null,
    evidence: trust.evidence.map(({ evaluatedAtMs, ...one }) => ({
      ...one,
      evaluatedAt: new Date(evaluatedAtMs).toISOString(),
    })),
  };
}

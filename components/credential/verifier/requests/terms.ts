import { z } from 'zod';
import { trustPolicy } from '#core/blueprint/model/credentials.ts';
import { type DcqlQuery, parseDcqlQuery } from '#core/credential/requests/dcql.ts';
import type { CredentialRequirement } from '#core/credential/requests/requirement.ts';
import type { TrustPolicy } from '#core/trust/evaluate.ts';

/** How a wallet sends its answer (OpenID4VP 1.0, sections 8.2 and 8.3.1). */
export const RESPONSE_MODES = ['direct_post', 'direct_post.jwt'] as const;
/** How the client id names the verifier (OpenID4VP 1.0, section 5.9.3). */
export const CLIENT_ID_PREFIXES = ['x509_san_dns', 'x509_hash'] as const;

type RequiredClaims = NonNullable<CredentialRequirement['requiredClaims']>;

/** What is asked of a wallet, and how its answer is judged. */
export interface RequestTerms {
  readonly query: DcqlQuery;
  /** Claims of a request by type, with expected values that a query cannot name; empty for a declared query. */
  readonly requiredClaims: RequiredClaims;
  /** By query id, one for each. */
  readonly policies: ReadonlyMap<string, TrustPolicy>;
  readonly revocationCheck: 'FailClosed' | 'FailOpen';
  readonly responseMode: (typeof RESPONSE_MODES)[number];
  readonly clientIdPrefix: (typeof CLIENT_ID_PREFIXES)[number];
}

/** Organisations of this installation: by their certificate, or by their DID. */
export const INSTALLATION_POLICY: TrustPolicy = { sources: [{ kind: 'x509-tenant' }, { kind: 'register' }] };

const stored = z.object({
  query: z.unknown().transform(parseDcqlQuery),
  requiredClaims: z
    .array(z.object({ claimName: z.string(), expectedValue: z.unknown().optional() }))
    .default([]),
  policies: z.array(z.tuple([z.string(), trustPolicy])).transform((entries) => new Map(entries)),
  revocationCheck: z.enum(['FailClosed', 'FailOpen']),
  responseMode: z.enum(RESPONSE_MODES),
  clientIdPrefix: z.enum(CLIENT_ID_PREFIXES),
});

/** The terms as they are stored. */
export function writeTerms({ policies, ...terms }: RequestTerms): string {
  return JSON.stringify({ ...terms, policies: [...policies] });
}

/** Reads the terms of a stored request. */
export function readTerms(value: unknown): RequestTerms {
  return stored.parse(value);
}

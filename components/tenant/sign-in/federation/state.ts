import { z } from 'zod';
import { createTokens, type OneTimeTokens } from '../../tokens/one-time/one-time.ts';

/** What a visit at a provider was begun for; the subject is the provider's name, or the organisation's id. */
const statePayload = z.object({
  intent: z.enum(['sign-in', 'link', 'proof', 'organization']),
  redirectUri: z.string(),
  nonce: z.string().optional(),
  verifier: z.string().optional(),
  /**
   * Hash of the cookie of the browser that began, base64url. Links and proofs have none: the account that began must be
   * that of the bearer token that ends them.
   */
  browser: z.string().optional(),
  surface: z.enum(['app', 'wallet']),
  /** An allowed destination. */
  returnTo: z.string().optional(),
  /** Who links, or proves to be the owner of the account. */
  accountId: z.string().optional(),
});

export type StatePayload = z.output<typeof statePayload>;
export type OAuthStates = OneTimeTokens<StatePayload>;

const lifetimeMs = 600_000;

/** States of visits at providers (RFC 6749, 10.12): ten minutes, once, in one browser. */
export function createOAuthStates(deps: Parameters<typeof createTokens>[0]): OAuthStates {
  return createTokens(deps, { purpose: 'oauth-state', payload: statePayload, lifetimeMs });
}

/** A person whom a provider knows and whose address has an account; the subject is the account. */
const pendingPayload = z.object({
  /** Of the social provider; absent for the provider of an organisation. */
  provider: z.string().optional(),
  organizationId: z.string().optional(),
  issuer: z.string(),
  subject: z.string(),
  email: z.string(),
  displayName: z.string().optional(),
  surface: z.enum(['app', 'wallet']),
});

export type PendingLink = z.output<typeof pendingPayload>;
export type LinkPendingTokens = OneTimeTokens<PendingLink>;

const pendingLifetimeMs = 300_000;

/** Tokens between a sign-in by a provider and the proof that the account is the same person's: 300 s. */
export function createLinkPendingTokens(deps: Parameters<typeof createTokens>[0]): LinkPendingTokens {
  return createTokens(deps, {
    purpose: 'link-pending',
    payload: pendingPayload,
    lifetimeMs: pendingLifetimeMs,
  });
}

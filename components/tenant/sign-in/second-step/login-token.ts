import { z } from 'zod';
import { HUMAN_TIERS } from '#core/identity/tiers.ts';
import type { SecondFactor } from '../../people/means/means.ts';
import { createTokens, type OneTimeTokens } from '../../tokens/one-time/one-time.ts';

/** What a right password has opened so far; the subject is the account. */
const payload = z.object({
  identityId: z.string(),
  organizationId: z.string(),
  /** The tier that the sign-in asked for and may have. */
  tier: z.enum(HUMAN_TIERS),
});

export type LoginTokens = OneTimeTokens<z.output<typeof payload>>;

const lifetimeMs = 300_000;

/** Tokens between a right password and its second factor: 300 s, five wrong proofs, one sign-in. */
export function createLoginTokens(deps: Parameters<typeof createTokens>[0]): LoginTokens {
  return createTokens(deps, { purpose: 'sign-in', payload, lifetimeMs });
}

/** A right password of an account that wants a second factor. */
export interface SecondStep {
  readonly loginToken: string;
  /** Strongest first. */
  readonly methods: readonly SecondFactor[];
}

export function isSecondStep(result: object): result is SecondStep {
  return 'loginToken' in result;
}

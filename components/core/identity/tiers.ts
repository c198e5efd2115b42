import type { Role } from './roles.ts';

/** Tiers of access tokens (specification document 1, section 5). */
export const TIERS = ['platform', 'consumer', 'service'] as const;
export type Tier = (typeof TIERS)[number];
/** Tiers that a person can request. */
export const HUMAN_TIERS = ['platform', 'consumer'] as const satisfies readonly Tier[];
export type HumanTier = (typeof HUMAN_TIERS)[number];
export type OrganizationType = 'Standard' | 'Public';

/** The literal second audience of consumer tokens (specification document 1). */
export const CITIZEN_WALLET_AUDIENCE = 'platform:citizen-wallet';

/** The audience of a tier in an installation: `{installation}:{tier}`. */
export function audienceOf(installation: string, tier: Tier): string {
  return `${installation}:${tier}`;
}

/** Every audience of a token of that tier. */
export function audiencesOf(installation: string, tier: Tier): string[] {
  const own = audienceOf(installation, tier);
  return tier === 'consumer' ? [own, CITIZEN_WALLET_AUDIENCE] : [own];
}

/** `iss` of every token of an installation. */
export function issuerOf(installation: string): string {
  return `urn:platform:${installation}`;
}

/**
 * Whether a membership entitles to the platform tier: any membership of a Standard organisation, with the roles granted
 * there. Members of a Public organisation get the consumer tier.
 */
export function isEntitledToPlatform(organization: OrganizationType, roles: readonly Role[]): boolean {
  return organization === 'Standard' && roles.length > 0;
}

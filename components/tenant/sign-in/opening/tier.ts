import type { Role } from '#core/identity/roles.ts';
import { type HumanTier, isEntitledToPlatform, type OrganizationType } from '#core/identity/tiers.ts';

interface TierQuestion {
  /** The explicitly requested tier. */
  readonly tier?: HumanTier | undefined;
  /** The return address of the caller: a path or an allowed external address. */
  readonly returnTo?: string | undefined;
  readonly roles: readonly Role[];
  readonly orgType: OrganizationType;
}

/** 'refused' only when the tier is requested explicitly without entitlement; otherwise the tier is lowered silently. */
export function resolveTier(question: TierQuestion): HumanTier | 'refused' {
  const entitled = isEntitledToPlatform(question.orgType, question.roles);
  const { tier } = question;
  if (tier === 'consumer') return 'consumer';
  if (tier === 'platform') return entitled ? 'platform' : 'refused';
  const destination = question.returnTo === undefined ? 'platform' : tierOfDestination(question.returnTo);
  return entitled ? destination : 'consumer';
}

function tierOfDestination(returnTo: string): HumanTier {
  const isPath = returnTo.startsWith('/') && !returnTo.startsWith('//');
  const path = isPath ? returnTo.split(/[?#]/)[0] : pathOf(returnTo);
  if (path === '/wallet' || path?.startsWith('/wallet/') === true) return 'consumer';
  if (path?.startsWith('/app') === true) return 'platform';
  return isPath || path === undefined ? 'platform' : 'consumer';
}

function pathOf(address: string): string | undefined {
  return URL.parse(address)?.pathname;
}

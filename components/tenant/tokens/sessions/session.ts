import type { HumanTier } from '#core/identity/tiers.ts';
import type { Membership } from '../../people/memberships/membership.ts';
import { strengthOf } from '../claims/strength.ts';
import type { TokenIssuer } from './issue.ts';
import { formatRefreshToken } from './refresh-token.ts';
import type { NewFamily } from './store.ts';

export interface SessionIssuer {
  readonly issuer: TokenIssuer;
  readonly refreshKey: Uint8Array;
}

export interface IssuedTokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Seconds. */
  readonly expiresIn: number;
}

/** A person's session in one organisation, after the commit of its transaction. */
export interface Session {
  readonly membership: Membership;
  readonly emailVerified: boolean;
  readonly family: Pick<NewFamily, 'id' | 'amr' | 'authTimeMs' | 'basicProofAtMs' | 'strongProofAtMs'>;
  readonly tier: HumanTier;
  /** Generation of the refresh token, starting at 0. */
  readonly generation: number;
  readonly revokedBeforeMs: number | undefined;
}

/** Issues the tokens of a session after its transaction has committed. */
export function issueSession({ issuer, refreshKey }: SessionIssuer, session: Session): IssuedTokens {
  const { membership, emailVerified, family, tier, generation } = session;
  const authTime = Math.floor(family.authTimeMs / 1000);
  const access = issuer.forUser(
    { ...membership, emailVerified },
    { tier, familyId: family.id, amr: family.amr, acr: strengthOf(family), authTime },
    session.revokedBeforeMs,
  );
  return { ...access, refreshToken: formatRefreshToken({ familyId: family.id, generation }, refreshKey) };
}

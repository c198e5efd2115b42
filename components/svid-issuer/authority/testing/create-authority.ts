import type { Clock } from '#kit/clock/clock.ts';
import { type Authority, loadAuthority, makeAuthority } from '../authority.ts';

const lifeMs = 10 * 365 * 86_400_000;

/** A new P-256 authority in memory only. */
export async function createAuthority(trustDomain: string, clock: Clock): Promise<Authority> {
  return loadAuthority(await makeAuthority(trustDomain, clock, lifeMs), trustDomain);
}

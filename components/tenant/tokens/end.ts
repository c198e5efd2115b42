import type { RevocationKind } from '#kit/auth/auth.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { longestTokenLifeMs } from '../revocations/revocation.ts';
import { appendRevocation } from '../revocations/store.ts';
import { type FamilyFilter, revokeFamilies } from './store.ts';

/** Tokens that end: access tokens by what they name, and the refresh families they come from. */
export interface TokenEnding {
  readonly kind: RevocationKind;
  readonly key: string;
  readonly families?: FamilyFilter | undefined;
  readonly reason: string;
  readonly atMs: number;
}

/**
 * A token that was issued right after another revocation bears a time up to a second ahead, so that revocations by
 * time pass it by; families that were used this lately are named one by one.
 */
const latelyMs = 15_000;

/** Ends tokens in the transaction of the cause. Every service refuses them within a second of its commit. */
export async function endTokens(tx: Transactor<TenantDatabase>, ending: TokenEnding): Promise<void> {
  const { atMs } = ending;
  const times = { notBeforeMs: atMs, expiresAtMs: atMs + longestTokenLifeMs };
  await appendRevocation(tx, { kind: ending.kind, key: ending.key, ...times });
  if (ending.families === undefined) return;
  const families = await revokeFamilies(tx, ending.families, { reason: ending.reason, atMs });
  for (const family of families) {
    const isLate = atMs - family.lastRotatedAtMs < latelyMs;
    if (isLate && ending.key !== family.id)
      await appendRevocation(tx, { kind: 'family', key: family.id, ...times });
  }
}

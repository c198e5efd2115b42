import type { RevocationKind } from '#kit/auth/auth.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { longestTokenLifeMs } from '../revocations/revocation.ts';
import { appendRevocation } from '../revocations/store.ts';
import { type FamilyFilter, revokeFamilies } from './store.ts';

/** The tokens to end: access tokens by a claim, and the refresh families that they belong to. */
interface TokenEnding {
  readonly kind: RevocationKind;
  readonly key: string;
  readonly families?: FamilyFilter | undefined;
  readonly reason: string;
  readonly atMs: number;
}

/**
 * A token issued right after another revocation has a time up to a second ahead, so that revocations by time do not
 * cover it. Families used within this time are therefore revoked one by one.
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

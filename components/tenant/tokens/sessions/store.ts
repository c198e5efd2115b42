import type { Selectable } from 'kysely';
import type { HumanTier } from '#core/identity/tiers.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { RefreshFamilyTable, TenantDatabase } from '../../database/schema.ts';
import type { Proofs, Strength } from '../claims/strength.ts';
import type { FamilyState } from './rotation.ts';

type DB = TenantDatabase;

/** All refresh tokens of one sign-in. */
export interface RefreshFamily extends FamilyState, Proofs {
  readonly id: string;
  readonly platformUserId: string;
  readonly identityId: string;
  readonly organizationId: string;
  readonly tier: HumanTier;
  readonly amr: readonly string[];
  readonly authTimeMs: number;
}

export interface NewFamily extends Proofs {
  readonly id: string;
  readonly platformUserId: string;
  readonly identityId: string;
  readonly organizationId: string;
  readonly tier: HumanTier;
  readonly amr: readonly string[];
  /** Time of the authentication; before the creation of the family when it continues an earlier session. */
  readonly authTimeMs: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

export async function insertFamily(tx: Transactor<DB>, family: NewFamily): Promise<void> {
  const at = new Date(family.createdAtMs);
  await tx
    .insertInto('refresh_families')
    .values({
      id: family.id,
      generation: 0,
      last_rotated_at: at,
      platform_user_id: family.platformUserId,
      identity_id: family.identityId,
      organization_id: family.organizationId,
      tier: family.tier,
      amr: [...family.amr],
      auth_time: new Date(family.authTimeMs),
      basic_proof_at: toTime(family.basicProofAtMs),
      strong_proof_at: toTime(family.strongProofAtMs),
      created_at: at,
      expires_at: new Date(family.expiresAtMs),
      revoked_at: null,
      revoke_reason: null,
    })
    .execute();
}

/**
 * Locks the row until the transaction ends: of parallel rotations one advances the family, the others see its result.
 */
export async function lockFamily(tx: Transactor<DB>, id: string): Promise<RefreshFamily | undefined> {
  const row = await tx
    .selectFrom('refresh_families')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  return row && toFamily(row);
}

export async function findFamily(db: Reader<DB>, id: string): Promise<RefreshFamily | undefined> {
  const row = await db.selectFrom('refresh_families').selectAll().where('id', '=', id).executeTakeFirst();
  return row && toFamily(row);
}

export async function rotateFamily(
  tx: Transactor<DB>,
  id: string,
  next: { readonly generation: number; readonly tier: HumanTier; readonly atMs: number },
): Promise<void> {
  await tx
    .updateTable('refresh_families')
    .set({ generation: next.generation, tier: next.tier, last_rotated_at: new Date(next.atMs) })
    .where('id', '=', id)
    .execute();
}

/** Stores that the person of a session has just proved to be its owner. */
export async function stampProof(
  tx: Transactor<DB>,
  id: string,
  proof: { readonly strength: Strength; readonly atMs: number },
): Promise<void> {
  const at = new Date(proof.atMs);
  await tx
    .updateTable('refresh_families')
    .set(proof.strength === 'strong' ? { strong_proof_at: at } : { basic_proof_at: at })
    .where('id', '=', id)
    .execute();
}

export type FamilyFilter =
  | { readonly id: string }
  | { readonly identityId: string }
  | { readonly platformUserId: string }
  | { readonly organizationId: string };

/** The living families of a person. */
export async function listFamilies(db: Reader<DB>, platformUserId: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('refresh_families')
    .select('id')
    .where('platform_user_id', '=', platformUserId)
    .where('revoked_at', 'is', null)
    .execute();
  return rows.map(({ id }) => id);
}

interface EndedFamily {
  readonly id: string;
  readonly lastRotatedAtMs: number;
}

/** Ends the active families; returns them. */
export async function revokeFamilies(
  tx: Transactor<DB>,
  filter: FamilyFilter,
  ending: { readonly reason: string; readonly atMs: number },
): Promise<EndedFamily[]> {
  const [column, value] = columnOf(filter);
  const rows = await tx
    .updateTable('refresh_families')
    .set({ revoked_at: new Date(ending.atMs), revoke_reason: ending.reason })
    .where('revoked_at', 'is', null)
    .where(column, '=', value)
    .returning(['id', 'last_rotated_at'])
    .execute();
  return rows.map((row) => ({ id: row.id, lastRotatedAtMs: row.last_rotated_at.getTime() }));
}

export async function pruneFamilies(tx: Transactor<DB>, expiredBeforeMs: number): Promise<void> {
  await tx.deleteFrom('refresh_families').where('expires_at', '<', new Date(expiredBeforeMs)).execute();
}

function columnOf(
  filter: FamilyFilter,
): ['id' | 'identity_id' | 'platform_user_id' | 'organization_id', string] {
  if ('id' in filter) return ['id', filter.id];
  if ('platformUserId' in filter) return ['platform_user_id', filter.platformUserId];
  return 'identityId' in filter
    ? ['identity_id', filter.identityId]
    : ['organization_id', filter.organizationId];
}

function toFamily(row: Selectable<RefreshFamilyTable>): RefreshFamily {
  return {
    id: row.id,
    generation: row.generation,
    lastRotatedAtMs: row.last_rotated_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
    revoked: row.revoked_at !== null,
    platformUserId: row.platform_user_id,
    identityId: row.identity_id,
    organizationId: row.organization_id,
    tier: row.tier === 'platform' ? 'platform' : 'consumer',
    amr: row.amr,
    authTimeMs: row.auth_time.getTime(),
    basicProofAtMs: row.basic_proof_at?.getTime(),
    strongProofAtMs: row.strong_proof_at?.getTime(),
  };
}

function toTime(ms: number | undefined): Date | null {
  return ms === undefined ? null : new Date(ms);
}

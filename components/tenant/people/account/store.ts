import type { Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

/** A session of a person, as the account page shows it. */
interface OwnSession {
  readonly id: string;
  readonly organizationId: string;
  readonly tier: string;
  readonly methods: readonly string[];
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number;
  readonly expiresAtMs: number;
}

/** Living sessions of a person, the newest first. */
export async function listSessions(
  db: Reader<DB>,
  accountId: string,
  nowMs: number,
): Promise<readonly OwnSession[]> {
  const rows = await db
    .selectFrom('refresh_families')
    .selectAll()
    .where('platform_user_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', new Date(nowMs))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map((row) => ({
    id: row.id,
    organizationId: row.organization_id,
    tier: row.tier,
    methods: row.amr,
    createdAtMs: row.created_at.getTime(),
    lastUsedAtMs: row.last_rotated_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
  }));
}

/** An account of a social provider that signs a person in. */
export interface SocialLink {
  readonly id: string;
  readonly provider: string;
  readonly email: string | undefined;
  readonly displayName: string | undefined;
  readonly linkedAtMs: number;
  readonly lastUsedAtMs: number | undefined;
}

export async function listSocialLinks(db: Reader<DB>, accountId: string): Promise<readonly SocialLink[]> {
  const rows = await db
    .selectFrom('social_links')
    .selectAll()
    .where('platform_user_id', '=', accountId)
    .orderBy('linked_at')
    .execute();
  return rows.map((row) => ({
    id: row.id,
    provider: row.provider,
    email: row.email ?? undefined,
    displayName: row.display_name ?? undefined,
    linkedAtMs: row.linked_at.getTime(),
    lastUsedAtMs: row.last_used_at?.getTime(),
  }));
}

/** What the account page shows of the account itself. */
interface OwnAccount {
  readonly email: string | undefined;
  readonly emailVerified: boolean;
  readonly passwordChangedAtMs: number | undefined;
}

export async function findOwnAccount(db: Reader<DB>, accountId: string): Promise<OwnAccount | undefined> {
  const row = await db
    .selectFrom('platform_users')
    .select(['email', 'email_verified', 'password_changed_at'])
    .where('id', '=', accountId)
    .executeTakeFirst();
  return (
    row && {
      email: row.email ?? undefined,
      emailVerified: row.email_verified,
      passwordChangedAtMs: row.password_changed_at?.getTime(),
    }
  );
}

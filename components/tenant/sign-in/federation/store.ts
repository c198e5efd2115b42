import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

/** An account of a social provider that signs a person in. */
interface StoredLink {
  readonly id: string;
  readonly accountId: string;
  readonly provider: string;
}

export async function findLink(
  db: Reader<DB>,
  provider: string,
  subject: string,
): Promise<StoredLink | undefined> {
  const row = await db
    .selectFrom('social_links')
    .select(['id', 'platform_user_id', 'provider'])
    .where('provider', '=', provider)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return row && { id: row.id, accountId: row.platform_user_id, provider: row.provider };
}

interface NewLink {
  readonly id: string;
  readonly accountId: string;
  readonly provider: string;
  readonly subject: string;
  readonly email: string | undefined;
  readonly displayName: string | undefined;
  readonly atMs: number;
}

/** @returns false when the identity belongs to an account already */
export async function insertLink(tx: Transactor<DB>, link: NewLink): Promise<boolean> {
  const inserted = await tx
    .insertInto('social_links')
    .values({
      id: link.id,
      platform_user_id: link.accountId,
      provider: link.provider,
      subject: link.subject,
      email: link.email ?? null,
      display_name: link.displayName ?? null,
      linked_at: new Date(link.atMs),
      last_used_at: null,
    })
    .onConflict((conflict) => conflict.columns(['provider', 'subject']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

interface LinkUse {
  readonly id: string;
  readonly email: string | undefined;
  readonly displayName: string | undefined;
  readonly atMs: number;
}

/** Records a sign-in, with address and name as the provider has them now. */
export async function recordLinkUse(tx: Transactor<DB>, use: LinkUse): Promise<void> {
  await tx
    .updateTable('social_links')
    .set({
      last_used_at: new Date(use.atMs),
      ...(use.email !== undefined && { email: use.email }),
      ...(use.displayName !== undefined && { display_name: use.displayName }),
    })
    .where('id', '=', use.id)
    .execute();
}

/** Deletes a connection of an account. @returns its provider; undefined when the account has no such connection */
export async function deleteLink(
  tx: Transactor<DB>,
  linkId: string,
  accountId: string,
): Promise<string | undefined> {
  const row = await tx
    .deleteFrom('social_links')
    .where('id', '=', linkId)
    .where('platform_user_id', '=', accountId)
    .returning('provider')
    .executeTakeFirst();
  return row?.provider;
}

/** Accounts with an address, as far as a sign-in by a provider must know them. */
interface Addressed {
  /** The account that has proved to own the address. */
  readonly verifiedId: string | undefined;
  /** An account of the organisation waits for the verification of the address. */
  readonly isAwaited: boolean;
}

export async function findAddressed(
  db: Reader<DB>,
  email: string,
  organizationId: string,
): Promise<Addressed> {
  const rows = await db
    .selectFrom('platform_users')
    .select(['id', 'email_verified', 'home_organization_id'])
    .where('email', '=', email)
    .where('status', '<>', 'Deleted')
    .execute();
  return {
    verifiedId: rows.find((row) => row.email_verified)?.id,
    isAwaited: rows.some((row) => !row.email_verified && row.home_organization_id === organizationId),
  };
}

interface Provisioned {
  readonly accountId: string;
  readonly identityId: string;
  readonly organizationId: string;
  readonly email: string | undefined;
  readonly isEmailVerified: boolean;
  readonly displayName: string;
  readonly isProfileComplete: boolean;
  readonly via: 'Oidc' | 'SocialLogin';
  /** Of the provider of the organisation. */
  readonly external?: { readonly issuer: string; readonly subject: string };
  readonly atMs: number;
}

/**
 * Makes an account with a membership for a person whom a provider knows.
 * @returns false when another request has made an account with this address or identity meanwhile
 */
export async function insertProvisioned(tx: Transactor<DB>, row: Provisioned): Promise<boolean> {
  const at = new Date(row.atMs);
  const verifiedAt = row.isEmailVerified ? at : null;
  const { issuer = null, subject = null } = row.external ?? {};
  const { rows } = await sql<{ id: string }>`
    WITH made AS (
      INSERT INTO platform_users (id, email, display_name, email_verified, email_verified_at,
        home_organization_id, status, created_at)
      VALUES (${row.accountId}, ${row.email ?? null}, ${row.displayName}, ${row.isEmailVerified}, ${verifiedAt},
        ${row.organizationId}, 'Active', ${at})
      ON CONFLICT DO NOTHING
      RETURNING id
    )
    INSERT INTO user_identities (id, organization_id, platform_user_id, email, display_name, roles, status,
      provisioned_via, external_issuer, external_subject, profile_completed, created_at)
    SELECT ${row.identityId}, ${row.organizationId}, made.id, ${row.email ?? null}, ${row.displayName},
      ARRAY['User'], 'Active', ${row.via}, ${issuer}, ${subject}, ${row.isProfileComplete}, ${at} FROM made
    RETURNING id`.execute(tx);
  return rows.length === 1;
}

/** A membership that the provider of an organisation signs in. */
export interface ExternalIdentity {
  readonly identityId: string;
  readonly accountId: string;
  readonly isDeleted: boolean;
}

interface ExternalKey {
  readonly organizationId: string;
  readonly issuer: string;
  readonly subject: string;
}

export async function findExternalIdentity(
  db: Reader<DB>,
  { organizationId, issuer, subject }: ExternalKey,
): Promise<ExternalIdentity | undefined> {
  const row = await db
    .selectFrom('user_identities')
    .select(['id', 'platform_user_id', 'status'])
    .where('organization_id', '=', organizationId)
    .where('external_issuer', '=', issuer)
    .where('external_subject', '=', subject)
    .executeTakeFirst();
  return row && { identityId: row.id, accountId: row.platform_user_id, isDeleted: row.status === 'Deleted' };
}

/**
 * Lets the provider of an organisation sign in a member.
 * @returns false when the membership has another identity there already
 */
export async function bindExternalIdentity(
  tx: Transactor<DB>,
  identityId: string,
  { issuer, subject }: Pick<ExternalKey, 'issuer' | 'subject'>,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('user_identities')
    .set({ external_issuer: issuer, external_subject: subject })
    .where('id', '=', identityId)
    .where((where) =>
      where.or([
        where('external_issuer', 'is', null),
        where('external_issuer', '<>', issuer),
        where.and([where('external_issuer', '=', issuer), where('external_subject', '=', subject)]),
      ]),
    )
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Writes the name and address of a membership whose provider gave none. */
export async function completeProfile(
  tx: Transactor<DB>,
  identityId: string,
  profile: { readonly displayName: string; readonly email: string | undefined },
): Promise<void> {
  const { displayName: display_name, email } = profile;
  const row = await tx
    .updateTable('user_identities')
    .set({ display_name, profile_completed: true, ...(email !== undefined && { email }) })
    .where('id', '=', identityId)
    .returning('platform_user_id')
    .executeTakeFirstOrThrow();
  await tx
    .updateTable('platform_users')
    .set({ display_name, ...(email !== undefined && { email }) })
    .where('id', '=', row.platform_user_id)
    .execute();
}

export async function isProfileComplete(db: Reader<DB>, identityId: string): Promise<boolean> {
  const row = await db
    .selectFrom('user_identities')
    .select('profile_completed')
    .where('id', '=', identityId)
    .executeTakeFirst();
  return row?.profile_completed === true;
}

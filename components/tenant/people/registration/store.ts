import { sql } from 'kysely';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

interface Registration {
  readonly accountId: string;
  readonly identityId: string;
  readonly organizationId: string;
  readonly email: string | undefined;
  readonly displayName: string;
  readonly passwordHash: string | undefined;
  readonly via: 'Local' | 'Passkey';
  readonly atMs: number;
}

/**
 * Makes an unverified account of an organisation, with its membership, unless the address has a verified account or one
 * of this organisation. One statement in every case.
 *
 * @returns false when nothing was made
 */
export async function insertRegistration(tx: Transactor<DB>, row: Registration): Promise<boolean> {
  const at = new Date(row.atMs);
  const [email, hash] = [row.email ?? null, row.passwordHash ?? null];
  const { rows } = await sql<{ id: string }>`
    WITH made AS (
      INSERT INTO platform_users (id, email, display_name, password_hash, password_changed_at, email_verified,
        home_organization_id, status, created_at)
      SELECT ${row.accountId}, ${email}::text, ${row.displayName}, ${hash}::text, ${at}::timestamptz, false,
        ${row.organizationId}, 'Active', ${at}::timestamptz
      WHERE NOT EXISTS (SELECT FROM platform_users
        WHERE email = ${email}::text AND (email_verified OR home_organization_id = ${row.organizationId}))
      ON CONFLICT DO NOTHING
      RETURNING id
    )
    INSERT INTO user_identities (id, organization_id, platform_user_id, email, display_name, roles, status,
      provisioned_via, created_at)
    SELECT ${row.identityId}, ${row.organizationId}, made.id, ${email}::text, ${row.displayName}, ARRAY['User'],
      'Active', ${row.via}, ${at}::timestamptz FROM made
    ON CONFLICT DO NOTHING
    RETURNING id`.execute(tx);
  return rows.length === 1;
}

/** Accounts with an address, locked in one order until the transaction ends. */
export async function lockAccountsOf(
  tx: Transactor<DB>,
  email: string,
): Promise<readonly { readonly id: string; readonly isVerified: boolean }[]> {
  const rows = await tx
    .selectFrom('platform_users')
    .select(['id', 'email_verified'])
    .where('email', '=', email)
    .orderBy('id')
    .forUpdate()
    .execute();
  return rows.map((row) => ({ id: row.id, isVerified: row.email_verified }));
}

export async function setVerifiedEmail(
  tx: Transactor<DB>,
  accountId: string,
  verified: { readonly email: string; readonly atMs: number },
): Promise<void> {
  await tx
    .updateTable('platform_users')
    .set({
      email: verified.email,
      email_verified: true,
      email_verified_at: new Date(verified.atMs),
      pending_email: null,
    })
    .where('id', '=', accountId)
    .execute();
  await tx
    .updateTable('user_identities')
    .set({ email: verified.email })
    .where('platform_user_id', '=', accountId)
    .where('status', '<>', 'Deleted')
    .execute();
}

export async function setPendingEmail(tx: Transactor<DB>, accountId: string, email: string): Promise<void> {
  await tx.updateTable('platform_users').set({ pending_email: email }).where('id', '=', accountId).execute();
}

export async function findPendingEmail(tx: Transactor<DB>, accountId: string): Promise<string | undefined> {
  const row = await tx
    .selectFrom('platform_users')
    .select('pending_email')
    .where('id', '=', accountId)
    .executeTakeFirst();
  return row?.pending_email ?? undefined;
}

/**
 * Gives the memberships of an account to another one. A membership in an organisation that has had the other person
 * already ends. The provider of an organisation signs in none of them until the person has connected it.
 */
export async function moveMemberships(tx: Transactor<DB>, from: string, to: string): Promise<void> {
  await sql`
    UPDATE user_identities SET platform_user_id = ${to}, external_issuer = NULL, external_subject = NULL
    WHERE platform_user_id = ${from} AND status <> 'Deleted' AND organization_id NOT IN (
      SELECT organization_id FROM user_identities WHERE platform_user_id = ${to})`.execute(tx);
  await sql`
    UPDATE user_identities SET status = 'Deleted' WHERE platform_user_id = ${from}`.execute(tx);
}

/** Ends an account: it signs in no longer, and its address is free. Its row stays, since the audit log names it. */
export async function closeAccount(tx: Transactor<DB>, accountId: string): Promise<void> {
  await tx
    .updateTable('platform_users')
    .set({ status: 'Deleted', email: null, email_verified: false, pending_email: null })
    .where('id', '=', accountId)
    .execute();
  await tx
    .updateTable('user_identities')
    .set({ status: 'Deleted' })
    .where('platform_user_id', '=', accountId)
    .execute();
}

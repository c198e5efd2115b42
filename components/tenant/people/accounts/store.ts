import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { PlatformUserTable, TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Account } from './account.ts';

type DB = TenantDatabase;
type AccountRow = Selectable<PlatformUserTable>;

export async function accountExists(db: Reader<DB>, id: string): Promise<boolean> {
  const row = await db.selectFrom('platform_users').select('id').where('id', '=', id).executeTakeFirst();
  return row !== undefined;
}

export async function findAccount(db: Reader<DB>, id: string): Promise<Account | undefined> {
  const row = await db.selectFrom('platform_users').selectAll().where('id', '=', id).executeTakeFirst();
  return row && toAccount(row);
}

/** Locks the row until the transaction ends. */
export async function lockAccount(tx: Transactor<DB>, id: string): Promise<Account | undefined> {
  const row = await tx
    .selectFrom('platform_users')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  return row && toAccount(row);
}

/**
 * The account of a sign-in, found by one statement in every case. With a subdomain: the account that is a member of
 * that organisation; an unverified account is a member only of its home organisation. Without a subdomain: the verified
 * account, else the only unverified account that is still a member of its home organisation.
 *
 * @param email normalised
 * @param subdomain normalised
 */
export async function findAddressedAccount(
  db: Reader<DB>,
  email: string,
  subdomain: string | undefined,
): Promise<Account | undefined> {
  const query = subdomain === undefined ? accountsOf(email) : accountsIn(subdomain, email);
  const { rows } = await query.execute(db);
  return rows[0] && toAccount(rows[0]);
}

function accountsOf(email: string): RawBuilder<AccountRow> {
  return sql<AccountRow>`
    WITH addressed AS (
      SELECT p.*, count(*) OVER (PARTITION BY p.email_verified) AS alike
      FROM platform_users p
      WHERE p.email = ${email} AND (p.email_verified OR EXISTS (
        SELECT FROM user_identities i JOIN organizations o ON o.id = i.organization_id
        WHERE i.platform_user_id = p.id AND i.organization_id = p.home_organization_id
          AND i.status <> 'Deleted' AND o.deleted_at IS NULL)))
    SELECT * FROM addressed WHERE alike = 1 ORDER BY email_verified DESC LIMIT 1`;
}

function accountsIn(subdomain: string, email: string): RawBuilder<AccountRow> {
  return sql<AccountRow>`
    SELECT p.* FROM platform_users p
    JOIN user_identities i ON i.platform_user_id = p.id
    JOIN organizations o ON o.id = i.organization_id
    WHERE p.email = ${email} AND o.subdomain = ${subdomain} AND o.deleted_at IS NULL AND i.status <> 'Deleted'
      AND (p.email_verified OR p.home_organization_id = o.id)
    ORDER BY p.email_verified DESC LIMIT 1`;
}

interface NewAccountRow {
  readonly id: string;
  readonly email: string;
  readonly displayName: string;
  readonly passwordHash: string;
  readonly emailVerified: boolean;
  /**
   * The organisation that creates the account; while the address is not verified, the account gives access to no other.
   */
  readonly homeOrganizationId: string;
  readonly createdAtMs: number;
}

interface ClaimedAccount {
  readonly id: string;
  readonly emailVerified: boolean;
  readonly isNew: boolean;
}

/**
 * The account under which an organisation adds an address, locked until the transaction ends: the verified account,
 * else the organisation's own unverified account, else a new account. A verified account does not take over unverified
 * ones. Each case runs one statement, so that the duration does not reveal which case applied.
 */
export async function claimAccount(tx: Transactor<DB>, row: NewAccountRow): Promise<ClaimedAccount> {
  // the statement returns no row when a concurrent transaction inserts it; that transaction has committed by now
  const claimed = (await findOrInsert(tx, row)) ?? (await findOrInsert(tx, row));
  if (claimed === undefined) throw refusal('ROW_MISSING');
  return claimed;
}

async function findOrInsert(tx: Transactor<DB>, row: NewAccountRow): Promise<ClaimedAccount | undefined> {
  const at = new Date(row.createdAtMs);
  const { rows } = await sql<ClaimedAccount>`
    WITH present AS (
      SELECT id, email_verified FROM platform_users
      WHERE email = ${row.email}
        AND (email_verified OR (NOT ${row.emailVerified}::boolean AND home_organization_id = ${row.homeOrganizationId}))
      ORDER BY email_verified DESC LIMIT 1 FOR NO KEY UPDATE
    ), made AS (
      INSERT INTO platform_users (id, email, display_name, password_hash, password_changed_at, email_verified,
        home_organization_id, status, created_at)
      SELECT ${row.id}, ${row.email}, ${row.displayName}, ${row.passwordHash}, ${at}, ${row.emailVerified},
        ${row.homeOrganizationId}, 'Active', ${at}
      WHERE NOT EXISTS (SELECT FROM present)
      ON CONFLICT DO NOTHING
      RETURNING id, email_verified
    )
    SELECT id, email_verified AS "emailVerified", false AS "isNew" FROM present
    UNION ALL SELECT id, email_verified, true FROM made`.execute(tx);
  return rows[0];
}

export async function setPassword(
  tx: Transactor<DB>,
  accountId: string,
  password: { readonly hash: string; readonly atMs: number },
): Promise<void> {
  await tx
    .updateTable('platform_users')
    .set({
      password_hash: password.hash,
      password_changed_at: new Date(password.atMs),
      password_change_required: false,
    })
    .where('id', '=', accountId)
    .execute();
}

/** Restricts the tokens of an account until its owner replaces the password. */
export async function requirePasswordChange(tx: Transactor<DB>, accountId: string): Promise<void> {
  await tx
    .updateTable('platform_users')
    .set({ password_change_required: true })
    .where('id', '=', accountId)
    .execute();
}

export async function removePassword(tx: Transactor<DB>, accountId: string): Promise<void> {
  await tx
    .updateTable('platform_users')
    .set({ password_hash: null, password_changed_at: null, password_change_required: false })
    .where('id', '=', accountId)
    .execute();
}

/** Sets the organisation of the next sign-in that names none. */
export async function setDefaultOrganization(
  tx: Transactor<DB>,
  accountId: string,
  organizationId: string,
): Promise<void> {
  await tx
    .updateTable('platform_users')
    .set({ default_organization_id: organizationId })
    .where('id', '=', accountId)
    .execute();
}

export async function countCreatedOrganization(tx: Transactor<DB>, accountId: string): Promise<void> {
  await tx
    .updateTable('platform_users')
    .set({ created_orgs_count: sql`created_orgs_count + 1` })
    .where('id', '=', accountId)
    .execute();
}

function toAccount(row: Selectable<PlatformUserTable>): Account {
  return {
    id: row.id,
    email: row.email ?? undefined,
    displayName: row.display_name,
    passwordHash: row.password_hash ?? undefined,
    passwordChangeRequired: row.password_change_required,
    emailVerified: row.email_verified,
    createdAtMs: row.created_at.getTime(),
    createdOrganizations: row.created_orgs_count,
    isActive: row.status === 'Active',
    defaultOrganizationId: row.default_organization_id ?? undefined,
    homeOrganizationId: row.home_organization_id ?? undefined,
  };
}

/** The hash of the password of an account; undefined when it has none. */
export async function findPasswordHash(db: Reader<DB>, accountId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('platform_users')
    .select('password_hash')
    .where('id', '=', accountId)
    .executeTakeFirst();
  return row?.password_hash ?? undefined;
}

/** Removes what confirms a password: passkeys, authenticator app, backup codes, codes by mail and text message. */
export async function dropSecondFactors(tx: Transactor<DB>, accountId: string): Promise<void> {
  for (const table of ['second_factors', 'backup_codes', 'passkeys'] as const) {
    await tx.deleteFrom(table).where('platform_user_id', '=', accountId).execute();
  }
}

/** Removes every means of signing in that was enrolled for an account, and its second factors and numbers. */
export async function dropCredentials(tx: Transactor<DB>, accountId: string): Promise<void> {
  await removePassword(tx, accountId);
  await dropSecondFactors(tx, accountId);
  await tx.deleteFrom('social_links').where('platform_user_id', '=', accountId).execute();
  await tx
    .updateTable('user_identities')
    .set({ external_issuer: null, external_subject: null })
    .where('platform_user_id', '=', accountId)
    .execute();
}

import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

/** The time of a UUID of version 7 in milliseconds (RFC 9562, section 5.7); null for any other UUID. */
function idMs(column: string): string {
  const hex = `left(replace(${column}::text, '-', ''), 12)`;
  return `CASE WHEN substr(${column}::text, 15, 1) = '7' THEN ('x' || ${hex})::bit(48)::bigint END`;
}

const nowMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/**
 * The constants of tokens/end.ts: the longest token lifetime, and the age below which families are revoked one by one.
 */
const longestTokenLifeMs = 28_860_000;
const latelySeconds = 15;

/**
 * A membership created with its account has an id of the same time, also after the user was removed and added again.
 */
const sameMomentMs = 5_000;

// Locked first, so that no session starts and no user is added while accounts are separated.
const hold = 'LOCK TABLE refresh_families, platform_users, user_identities IN ACCESS EXCLUSIVE MODE';

const columns = [
  'ALTER TABLE platform_users ADD COLUMN home_organization_id uuid REFERENCES organizations (id)',
  'ALTER TABLE platform_users DROP CONSTRAINT platform_users_email_key',
];

// The oldest membership keeps the account. When the membership that the account was created with was purged with its
// organisation, the password was not chosen by the remaining organisation and is deleted.
const memberships = `
CREATE TABLE account_memberships AS
SELECT m.*, m.place > 1 AS moves, m.place > 1 OR NOT m.made_account AS loses_password, gen_random_uuid() AS new_account_id
FROM (
  SELECT i.id AS identity_id, i.organization_id, i.platform_user_id AS account_id, i.display_name, i.created_at,
    i.last_login_at, i.status <> 'Deleted' AS is_member,
    row_number() OVER (PARTITION BY p.id ORDER BY (i.created_at = p.created_at) DESC, i.id) AS place,
    i.created_at = p.created_at
      OR coalesce(abs((${idMs('i.id')}) - (${idMs('p.id')})) < ${sameMomentMs}, false) AS made_account
  FROM user_identities i JOIN platform_users p ON p.id = i.platform_user_id
  WHERE NOT p.email_verified
) m`;

const accounts = [
  `UPDATE platform_users p SET home_organization_id = m.organization_id,
    default_organization_id = CASE WHEN p.default_organization_id IS NOT NULL THEN m.organization_id END,
    password_hash = CASE WHEN NOT m.loses_password THEN p.password_hash END
  FROM account_memberships m WHERE m.account_id = p.id AND NOT m.moves`,
  // an account without an organisation gives no access, so its password is deleted
  'UPDATE platform_users SET password_hash = NULL WHERE NOT email_verified AND home_organization_id IS NULL',
  `INSERT INTO platform_users (id, email, display_name, email_verified, status, home_organization_id, created_at, last_login_at)
  SELECT m.new_account_id, p.email, m.display_name, false, p.status, m.organization_id, m.created_at, m.last_login_at
  FROM account_memberships m JOIN platform_users p ON p.id = m.account_id WHERE m.moves`,
  `UPDATE user_identities i SET platform_user_id = m.new_account_id
  FROM account_memberships m WHERE m.identity_id = i.id AND m.moves`,
];

const sessions = [
  `INSERT INTO revocations (kind, key, not_before_ms, expires_at_ms)
  SELECT 'identity', m.identity_id::text, ${nowMs}, ${nowMs} + ${longestTokenLifeMs}
  FROM account_memberships m WHERE m.loses_password AND m.is_member`,
  `INSERT INTO revocations (kind, key, not_before_ms, expires_at_ms)
  SELECT 'family', f.id::text, ${nowMs}, ${nowMs} + ${longestTokenLifeMs}
  FROM account_memberships m JOIN refresh_families f ON f.identity_id = m.identity_id
  WHERE m.loses_password AND f.revoked_at IS NULL
    AND f.last_rotated_at > clock_timestamp() - make_interval(secs => ${latelySeconds})`,
  `UPDATE refresh_families f SET revoked_at = clock_timestamp(), revoke_reason = 'account-separated'
  FROM account_memberships m WHERE m.identity_id = f.identity_id AND m.loses_password AND f.revoked_at IS NULL`,
  `UPDATE refresh_families f SET platform_user_id = m.new_account_id
  FROM account_memberships m WHERE m.identity_id = f.identity_id AND m.moves`,
];

const systemOrganization = '00000000-0000-0000-0000-000000000001';

const notes = [
  // inbox entries about a membership move to its account; all others stay with the existing account
  `UPDATE inbox_entries e SET platform_user_id = m.new_account_id
  FROM account_memberships m
  WHERE m.moves AND e.platform_user_id = m.account_id AND e.correlation_key = 'membership:' || m.organization_id`,
  `INSERT INTO audit_events (organization_id, occurred_at, event_type, identity_id, platform_user_id, success, details)
  SELECT m.organization_id, clock_timestamp(), 'UserUpdatedInOrganization', m.identity_id,
    CASE WHEN m.moves THEN m.new_account_id ELSE m.account_id END, true, '{"reason": "account-separated"}'
  FROM account_memberships m WHERE m.loses_password AND m.is_member`,
  // without an administrator who has a password, system administrators are notified too
  `WITH affected AS (
    SELECT organization_id, count(*) AS users FROM account_memberships
    WHERE loses_password AND is_member GROUP BY organization_id
  ), administrators AS (
    SELECT i.organization_id, i.platform_user_id, i.roles, p.password_hash IS NOT NULL AS has_password
    FROM user_identities i JOIN platform_users p ON p.id = i.platform_user_id
    WHERE i.status = 'Active' AND p.status = 'Active' AND i.roles && '{Administrator,SystemAdmin}'
  ), notified AS (
    SELECT a.organization_id, d.platform_user_id FROM affected a
    JOIN administrators d ON d.organization_id = a.organization_id AND 'Administrator' = ANY (d.roles)
    UNION
    SELECT a.organization_id, s.platform_user_id FROM affected a
    JOIN administrators s ON s.organization_id = '${systemOrganization}' AND 'SystemAdmin' = ANY (s.roles)
    WHERE NOT EXISTS (
      SELECT FROM administrators d
      WHERE d.organization_id = a.organization_id AND 'Administrator' = ANY (d.roles) AND d.has_password)
  )
  INSERT INTO inbox_entries (id, platform_user_id, source_event_id, category, severity, correlation_key, title, summary,
    icon_key, detail_href, channel_hints, writer_service_id, occurred_at)
  SELECT gen_random_uuid(), n.platform_user_id, gen_random_uuid(), 'Membership', 'ActionRequired',
    'membership:' || o.id, 'Users of ' || o.name || ' need a new password',
    a.users || ' users shared an account with another organisation under an address that is not verified. Each has an '
      || 'account of this organisation alone now, without a password. Remove such a user and add it again with a '
      || 'password. The audit log names them with the reason account-separated.',
    'membership.separated', '/api/organizations/' || o.id || '/users', '{Inbox,Email}', 'service-tenant', clock_timestamp()
  FROM notified n JOIN affected a USING (organization_id) JOIN organizations o ON o.id = n.organization_id
  WHERE o.deleted_at IS NULL`,
];

const rules = [
  'DROP TABLE account_memberships',
  'CREATE INDEX platform_users_by_email ON platform_users (email)',
  'CREATE UNIQUE INDEX platform_users_verified_email ON platform_users (email) WHERE email_verified',
  `CREATE UNIQUE INDEX platform_users_unverified_email ON platform_users (home_organization_id, email)
    WHERE NOT email_verified`,
  // A process of an earlier release sets no home; the constraint stops it from creating an account that several
  // organisations could join.
  `ALTER TABLE platform_users ADD CONSTRAINT platform_users_home
    CHECK (email_verified OR home_organization_id IS NOT NULL OR password_hash IS NULL)`,
  `CREATE UNIQUE INDEX user_identities_address ON user_identities (organization_id, email) WHERE status <> 'Deleted'`,
];

/** Each account with an unverified address belongs to one organisation; shared accounts are separated. */
export const accountHomes: Migration = {
  name: '0009-account-homes',
  async up(db) {
    const separation = [memberships, 'ANALYZE account_memberships', ...accounts, ...sessions, ...notes];
    for (const statement of [hold, ...columns, ...separation, ...rules]) {
      await sql.raw(statement).execute(db);
    }
  },
};

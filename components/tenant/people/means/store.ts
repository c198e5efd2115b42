import { sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Means } from './means.ts';

/** The means of an account, by one statement; those of an unknown account are none. */
export async function findMeans(db: Reader<TenantDatabase>, accountId: string): Promise<Means> {
  const { rows } = await sql<Means>`
    SELECT p.password_hash IS NOT NULL AS "hasPassword",
      (SELECT count(*)::int FROM passkeys k WHERE k.platform_user_id = p.id AND k.status = 'Active') AS passkeys,
      ARRAY(SELECT s.provider FROM social_links s WHERE s.platform_user_id = p.id ORDER BY s.linked_at)
        AS "socialProviders",
      f.totp_verified_at IS NOT NULL AS "hasTotp",
      coalesce(f.email_otp_enabled, false) AND p.email_verified AS "hasEmailCodes",
      coalesce(f.sms_otp_enabled, false) AND f.phone_verified_at IS NOT NULL AS "hasSmsCodes"
    FROM platform_users p LEFT JOIN second_factors f ON f.platform_user_id = p.id
    WHERE p.id = ${accountId}`.execute(db);
  return rows[0] ?? none;
}

/** Names of the social providers that are connected with an account, the earliest first. */
export async function listSocialProviders(
  db: Reader<TenantDatabase>,
  accountId: string,
): Promise<readonly string[]> {
  return (await findMeans(db, accountId)).socialProviders;
}

const none: Means = {
  hasPassword: false,
  passkeys: 0,
  socialProviders: [],
  hasTotp: false,
  hasEmailCodes: false,
  hasSmsCodes: false,
};

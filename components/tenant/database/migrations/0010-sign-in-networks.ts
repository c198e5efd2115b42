import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

/** Failed sign-ins of a subject: an account, or the addresses without an account that share a record. */
const guesses = (table: string) => `
CREATE TABLE ${table} (
  subject uuid PRIMARY KEY,
  failures integer NOT NULL,
  is_closed boolean NOT NULL,
  unreported boolean NOT NULL,
  paced_until timestamptz,
  touched_at timestamptz NOT NULL
)`;

const networks = (table: string) => `
CREATE TABLE ${table} (
  subject uuid NOT NULL,
  network text NOT NULL,
  failures integer NOT NULL,
  locked_until timestamptz,
  locked_permanently boolean NOT NULL,
  unreported boolean NOT NULL,
  last_failure_at timestamptz,
  last_sign_in_at timestamptz,
  paced_until timestamptz,
  PRIMARY KEY (subject, network)
)`;

// A locked account becomes open: its count stays, known networks may sign in, and all other networks wait until the
// lock ends, at most a day. Their rate limit is 15 guesses with one more per 2 hours.
const formerLocks = `
INSERT INTO account_guesses (subject, failures, is_closed, unreported, paced_until, touched_at)
SELECT id, failed_login_count, failed_login_count >= 100, false,
  CASE
    WHEN locked_permanently THEN now() + interval '1 day' + 14 * interval '2 hours'
    WHEN locked_until > now() THEN least(locked_until, now() + interval '1 day') + 14 * interval '2 hours'
  END, now()
FROM platform_users WHERE failed_login_count > 0 OR locked_permanently OR locked_until > now()`;

// The 16 most recent sign-in networks of each account within 30 days, from the audit log.
const formerSignIns = `
INSERT INTO account_networks
  (subject, network, failures, locked_permanently, unreported, last_sign_in_at)
SELECT platform_user_id, network, 0, false, false, last_at FROM (
  SELECT platform_user_id, network, max(occurred_at) AS last_at,
    row_number() OVER (PARTITION BY platform_user_id ORDER BY max(occurred_at) DESC) AS place
  FROM (
    SELECT platform_user_id, occurred_at,
      network(set_masklen(address, CASE family(address) WHEN 4 THEN 24 ELSE 48 END))::text AS network
    FROM (
      SELECT e.platform_user_id, e.occurred_at, CASE
        WHEN pg_input_is_valid(regexp_replace(e.ip_address, '^::ffff:(?=[0-9.]+$)', '', 'i'), 'inet')
        THEN host(regexp_replace(e.ip_address, '^::ffff:(?=[0-9.]+$)', '', 'i')::inet)::inet END AS address
      FROM audit_events e JOIN platform_users p ON p.id = e.platform_user_id
      WHERE e.event_type = 'Login' AND e.success AND e.occurred_at > now() - interval '30 days'
    ) signed_in WHERE address IS NOT NULL
  ) by_network GROUP BY platform_user_id, network
) latest WHERE place <= 16`;

const statements = [
  guesses('account_guesses'),
  networks('account_networks'),
  // Separate from the tables of accounts, so that addresses without an account cannot displace their rows.
  guesses('unknown_guesses'),
  networks('unknown_networks'),
  'CREATE INDEX account_guesses_unreported ON account_guesses (subject) WHERE unreported',
  'CREATE INDEX account_networks_unreported ON account_networks (subject, network) WHERE unreported',
  formerLocks,
  formerSignIns,
  // The columns failed_login_count, locked_until and locked_permanently of platform_users stay, because replicas of the
  // earlier release use them during the rollout. This release does not read them.
  'ALTER TABLE refresh_families ADD COLUMN basic_proof_at timestamptz',
  'ALTER TABLE refresh_families ADD COLUMN strong_proof_at timestamptz',
  // All sessions of earlier releases began with a password.
  'UPDATE refresh_families SET basic_proof_at = auth_time',
];

export const signInNetworks: Migration = {
  name: '0010-sign-in-networks',
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

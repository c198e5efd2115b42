import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { GuessNetworkTable, GuessTable, TenantDatabase } from '../../database/schema.ts';
import { emptyLadder, knownNetworkMs, type Ladder, type NetworkState } from './ladder.ts';
import type { Subject } from './subject.ts';

type DB = TenantDatabase;

/** Both kinds of subjects have tables of the same layout and use the same statements. */
function tablesOf(subject: Subject) {
  return subject.kind === 'account'
    ? { guesses: sql.table('account_guesses'), networks: sql.table('account_networks') }
    : { guesses: sql.table('unknown_guesses'), networks: sql.table('unknown_networks') };
}

export async function readLadder(db: Reader<DB>, subject: Subject): Promise<Ladder> {
  const { guesses } = tablesOf(subject);
  const { rows } = await sql<
    Selectable<GuessTable>
  >`SELECT * FROM ${guesses} WHERE subject = ${subject.id}`.execute(db);
  return toLadder(rows[0], await readNetworks(db, subject));
}

/** Locks the record until the transaction ends, so that attempts on all replicas are processed sequentially. */
export async function lockLadder(tx: Transactor<DB>, subject: Subject, nowMs: number): Promise<Ladder> {
  const { guesses } = tablesOf(subject);
  const { rows } = await sql<Selectable<GuessTable>>`
    INSERT INTO ${guesses} (subject, failures, is_closed, unreported, touched_at)
    VALUES (${subject.id}, 0, false, false, ${new Date(nowMs)})
    ON CONFLICT (subject) DO UPDATE SET touched_at = excluded.touched_at
    RETURNING *`.execute(tx);
  return toLadder(rows[0], await readNetworks(tx, subject));
}

/** Writes the totals and the given networks. */
export async function saveLadder(
  tx: Transactor<DB>,
  subject: Subject,
  ladder: Ladder,
  written: readonly string[],
): Promise<void> {
  const tables = tablesOf(subject);
  await sql`
    UPDATE ${tables.guesses} SET failures = ${ladder.failures}, is_closed = ${ladder.isClosed},
      unreported = ${ladder.unreported}, paced_until = ${toTime(ladder.theoreticalArrivalMs)}
    WHERE subject = ${subject.id}`.execute(tx);
  for (const network of written) {
    const state = ladder.networks.get(network);
    if (state === undefined) continue;
    await sql`
      INSERT INTO ${tables.networks} (subject, network, failures, locked_until, locked_permanently, unreported,
        last_failure_at, last_sign_in_at, paced_until)
      VALUES (${subject.id}, ${network}, ${state.failures}, ${toTime(state.lockedUntilMs)},
        ${state.lockedPermanently}, ${state.unreported}, ${toTime(state.lastFailureAtMs)},
        ${toTime(state.lastSignInAtMs)}, ${toTime(state.theoreticalArrivalMs)})
      ON CONFLICT (subject, network) DO UPDATE SET failures = excluded.failures,
        locked_until = excluded.locked_until, locked_permanently = excluded.locked_permanently,
        unreported = excluded.unreported, last_failure_at = excluded.last_failure_at,
        last_sign_in_at = excluded.last_sign_in_at, paced_until = excluded.paced_until`.execute(tx);
  }
}

export async function dropNetworks(
  tx: Transactor<DB>,
  accountId: string,
  networks: readonly string[],
): Promise<void> {
  if (networks.length === 0) return;
  await tx
    .deleteFrom('account_networks')
    .where('subject', '=', accountId)
    .where('network', 'in', networks)
    .execute();
}

/** The organisation that created the account, else its oldest membership; undefined when it has none. */
export async function findHomeOrganization(db: Reader<DB>, accountId: string): Promise<string | undefined> {
  const oldestMembership = sql<string | null>`(
    SELECT i.organization_id FROM user_identities i
    WHERE i.platform_user_id = p.id AND i.status <> 'Deleted' ORDER BY i.created_at, i.id LIMIT 1)`;
  const row = await db
    .selectFrom('platform_users as p')
    .select((where) => where.fn.coalesce('p.home_organization_id', oldestMembership).as('organization_id'))
    .where('p.id', '=', accountId)
    .executeTakeFirst();
  return row?.organization_id ?? undefined;
}

export interface UnreportedLock {
  readonly accountId: string;
  readonly failures: number;
  /** Undefined means until an administrator unlocks. */
  readonly untilMs: number | undefined;
  /** Undefined means every network. */
  readonly network: string | undefined;
}

/** Takes the unreported locks; they count as reported when the transaction commits. */
export async function takeUnreportedLocks(tx: Transactor<DB>, limit: number): Promise<UnreportedLock[]> {
  const closed = await sql<{ subject: string; failures: number }>`
    UPDATE account_guesses SET unreported = false WHERE subject IN (
      SELECT subject FROM account_guesses WHERE unreported LIMIT ${limit} FOR UPDATE SKIP LOCKED)
    RETURNING subject, failures`.execute(tx);
  const locked = await sql<
    Pick<Selectable<GuessNetworkTable>, 'subject' | 'network' | 'failures' | 'locked_until'>
  >`
    UPDATE account_networks SET unreported = false WHERE (subject, network) IN (
      SELECT subject, network FROM account_networks WHERE unreported LIMIT ${limit} FOR UPDATE SKIP LOCKED)
    RETURNING subject, network, failures, locked_until`.execute(tx);
  return [
    ...closed.rows.map(({ subject, failures }) => ({
      accountId: subject,
      failures,
      untilMs: undefined,
      network: undefined,
    })),
    ...locked.rows.map(({ subject, failures, network, locked_until: until }) => ({
      accountId: subject,
      failures,
      untilMs: until?.getTime(),
      network,
    })),
  ];
}

/**
 * Deletes rows that no lockout rule reads any more: networks without a failure or a sign-in for 30 days, except locked
 * ones; records of addresses without an account after 30 days; records of accounts that were deleted or have no
 * failures.
 */
export async function pruneLadders(tx: Transactor<DB>, nowMs: number): Promise<void> {
  const now = new Date(nowMs);
  const idleSince = new Date(nowMs - knownNetworkMs);
  const idle = sql`greatest(last_failure_at, last_sign_in_at, '-infinity') < ${idleSince}`;
  await sql`
    DELETE FROM account_networks WHERE ${idle} AND NOT locked_permanently
      AND (locked_until IS NULL OR locked_until <= ${now})`.execute(tx);
  await sql`DELETE FROM unknown_networks WHERE ${idle}`.execute(tx);
  await sql`DELETE FROM unknown_guesses WHERE touched_at < ${idleSince}`.execute(tx);
  await sql`
    DELETE FROM account_guesses WHERE touched_at < ${idleSince} AND failures = 0 AND NOT is_closed`.execute(
    tx,
  );
  for (const table of ['account_guesses', 'account_networks']) {
    await sql`
      DELETE FROM ${sql.table(table)} WHERE subject NOT IN (SELECT id FROM platform_users)`.execute(tx);
  }
}

async function readNetworks(db: Reader<DB>, subject: Subject): Promise<Selectable<GuessNetworkTable>[]> {
  const { networks } = tablesOf(subject);
  const { rows } = await sql<
    Selectable<GuessNetworkTable>
  >`SELECT * FROM ${networks} WHERE subject = ${subject.id}`.execute(db);
  return rows;
}

function toLadder(
  row: Selectable<GuessTable> | undefined,
  networks: readonly Selectable<GuessNetworkTable>[],
): Ladder {
  if (row === undefined) return { ...emptyLadder, networks: toNetworks(networks) };
  return {
    failures: row.failures,
    isClosed: row.is_closed,
    unreported: row.unreported,
    theoreticalArrivalMs: row.paced_until?.getTime() ?? 0,
    networks: toNetworks(networks),
  };
}

function toNetworks(rows: readonly Selectable<GuessNetworkTable>[]): Map<string, NetworkState> {
  return new Map(
    rows.map((row) => [
      row.network,
      {
        failures: row.failures,
        lockedUntilMs: row.locked_until?.getTime(),
        lockedPermanently: row.locked_permanently,
        unreported: row.unreported,
        lastFailureAtMs: row.last_failure_at?.getTime(),
        lastSignInAtMs: row.last_sign_in_at?.getTime(),
        theoreticalArrivalMs: row.paced_until?.getTime() ?? 0,
      },
    ]),
  );
}

function toTime(ms: number | undefined): Date | null {
  return ms === undefined || ms === 0 ? null : new Date(ms);
}

import { type Kysely, sql } from 'kysely';

/** One forward step of a schema. Names sort like `0001-registers` and never change once released. */
export interface Migration {
  readonly name: string;
  up(db: Kysely<unknown>): Promise<void>;
}

interface AppliedRow {
  readonly name: string;
}

/**
 * Creates the schema when missing and applies the missing migrations in order, all in one transaction. Processes that
 * start together take turns by an advisory lock on the schema's name.
 *
 * @returns the names of those that it applied.
 * @throws Error when names are out of order or repeated, or when the database has a migration that this release does
 * not know.
 */
export async function migrate(
  db: Kysely<unknown>,
  schema: string,
  migrations: readonly Migration[],
): Promise<string[]> {
  const names = migrations.map((migration) => migration.name);
  checkNames(names);
  return db.transaction().execute(async (tx) => {
    // Another process may be migrating for a while, and so may this one.
    await sql`set local statement_timeout = 0`.execute(tx);
    await sql`select pg_advisory_xact_lock(hashtextextended(${`chancery.migrate.${schema}`}, 0))`.execute(tx);
    await createSchema(tx, schema);
    await sql`create table if not exists migrations (
      name text primary key, applied_at timestamptz not null default now())`.execute(tx);
    const { rows } = await sql<AppliedRow>`select name from migrations order by name`.execute(tx);
    const applied = rows.map((row) => row.name);
    checkApplied(names, applied, schema);
    const missing = migrations.slice(applied.length);
    for (const migration of missing) {
      await migration.up(tx);
      await sql`insert into migrations (name) values (${migration.name})`.execute(tx);
    }
    return missing.map((migration) => migration.name);
  });
}

async function createSchema(tx: Kysely<unknown>, schema: string): Promise<void> {
  const found = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(tx);
  if (found.rows.length === 0) {
    await sql`create schema ${sql.id(schema)}`.execute(tx);
  }
}

function checkNames(names: readonly string[]): void {
  for (const [index, name] of names.entries()) {
    const previous = names[index - 1];
    if (previous !== undefined && previous >= name) {
      throw new Error(`migration ${name} must come after ${previous}`);
    }
  }
}

/** A database with unknown migrations belongs to a newer release, and continuing could damage it. */
function checkApplied(names: readonly string[], applied: readonly string[], schema: string): void {
  for (const [index, name] of applied.entries()) {
    if (names[index] !== name) {
      throw new Error(
        `schema ${schema} has migration ${name} where this release expects ${names[index] ?? 'none'}`,
      );
    }
  }
}

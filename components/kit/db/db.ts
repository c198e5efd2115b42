import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import pg from 'pg';
import type { Migrate } from '#kit/lifecycle/lifecycle.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import { type Migration, migrate } from './migrate.ts';
import { createQueryObserver } from './observe.ts';
import { openPool, reportingPool, sqlState, unavailable } from './pool.ts';

export type { Migration } from './migrate.ts';
export { sqlState, unavailable };

/** Reads. A function that receives a Reader cannot write through the query builder; a Transactor is a Reader too. */
export type Reader<DB> = Pick<
  Kysely<DB>,
  'selectFrom' | 'selectNoFrom' | 'fn' | 'case' | 'dynamic' | 'getExecutor'
>;

/** Reads and writes of one transaction. Only `Database.transact` makes one, so every write is in a transaction. */
export type Transactor<DB> = Transaction<DB>;

type Isolation = 'read committed' | 'repeatable read' | 'serializable';

interface TransactOptions {
  /** `read committed` when absent. */
  readonly isolation?: Isolation;
  /** How often a serialization failure or deadlock is retried; 3 when absent. */
  readonly retries?: number;
}

/** A component's schema in PostgreSQL. */
export interface Database<DB> {
  readonly read: Reader<DB>;
  /** For COPY and LISTEN; everything else uses `read` and `transact`. */
  readonly pool: pg.Pool;
  /**
   * Runs `act` in one transaction and commits when it returns. `act` may run again after a serialization failure or
   * deadlock (40001, 40P01), so it has no effects outside the transaction. While PostgreSQL is away this throws
   * AppError `unavailable`. When the connection is lost during the commit, the transaction may have committed.
   */
  transact<T>(act: (tx: Transactor<DB>) => Promise<T>, options?: TransactOptions): Promise<T>;
  /** Resolves when PostgreSQL answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

interface DatabaseOptions {
  /** postgres:// address; `?host=` may name a socket directory. */
  readonly url: string;
  /** Schema of the component, created when missing. Nothing else is on the search path. */
  readonly schema: string;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  readonly migrations: readonly Migration[];
  /** Maximum number of connections; 10 when absent. */
  readonly maxConnections?: number;
  /** Maximum duration of a statement; 30 000 when absent. */
  readonly statementTimeoutMs?: number;
}

/**
 * Opens the schema of a component: connects, creates the schema, applies the missing migrations (one process at a time,
 * by advisory lock). int8 columns are returned as numbers while they are safe integers, as bigint beyond; bytea as
 * Buffer; timestamptz as Date.
 *
 * @throws AppError `unavailable` when PostgreSQL cannot be reached, or what a migration throws.
 */
export async function openDatabase<DB>(options: DatabaseOptions): Promise<Database<DB>> {
  const pool = openPool(options);
  const dialect = () => new PostgresDialect({ pool: reportingPool(pool) });
  const observe = createQueryObserver(options);
  const db = new Kysely<DB>({ dialect: dialect(), log: observe });
  // Shares the pool, which `db` owns.
  const untyped = new Kysely<unknown>({ dialect: dialect() });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= db.destroy();
    return closed;
  };
  try {
    await migrate(untyped, options.schema, options.migrations);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    read: db,
    pool,
    transact: (act, transactOptions) => transact(db, act, transactOptions),
    ping: async () => {
      await sql`select 1`.execute(db);
    },
    close,
  };
}

/**
 * The function of a process that only migrates: it brings the schema up to date as `openDatabase` does, over one
 * connection.
 *
 * Errors: unavailable when PostgreSQL cannot be reached, and what a migration throws.
 */
export function migrationOf(schema: string, migrations: readonly Migration[]): Migrate {
  return async ({ url, log }) => {
    const pool = openPool({ url, schema, log, maxConnections: 1 });
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: reportingPool(pool) }) });
    try {
      return await migrate(db, schema, migrations);
    } finally {
      await db.destroy();
    }
  };
}

const retryable = new Set(['40001', '40P01']);

async function transact<DB, T>(
  db: Kysely<DB>,
  act: (tx: Transactor<DB>) => Promise<T>,
  options: TransactOptions = {},
): Promise<T> {
  const { isolation = 'read committed', retries = 3 } = options;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await db.transaction().setIsolationLevel(isolation).execute(act);
    } catch (error) {
      if (attempt >= retries || !retryable.has(sqlState(error) ?? '')) {
        throw error;
      }
      await pause(attempt);
    }
  }
}

/** Waits a random time, up to 5, 10, 20 ms, so that colliding transactions do not collide again. */
function pause(attempt: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * 5 * 2 ** attempt));
}

/** Whether an error is a unique violation (23505), of the named constraint when one is given. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === '23505' &&
    (constraint === undefined || error.constraint === constraint)
  );
}

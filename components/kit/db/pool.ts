import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import pg from 'pg';
import { sha256Hex } from '#core/crypto/hash.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';

interface PoolOptions {
  readonly url: string;
  readonly schema: string;
  readonly log: Logger;
  readonly maxConnections?: number;
  readonly statementTimeoutMs?: number;
}

/** Opens the connections of a schema. The loss of a connection is logged and never ends the process. */
export function openPool(options: PoolOptions): pg.Pool {
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(options.schema)) {
    throw new Error(`not a schema name: ${options.schema}`);
  }
  if (/[?&]options=/.test(options.url)) {
    throw new Error('DATABASE_URL may not carry options: they would replace the search path');
  }
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: `chancery-${options.schema}`,
    statement_timeout: options.statementTimeoutMs ?? 30_000,
    idle_in_transaction_session_timeout: 60_000,
    // A cached generic plan would be kept while tables grow: one made for a few rows reads whole tables later.
    options: `-c search_path=${options.schema} -c plan_cache_mode=force_custom_plan`,
    types: { getTypeParser },
  });
  // When PostgreSQL goes away, connections emit an error besides failing their queries: idle ones through the pool,
  // those in use by themselves. Without both listeners such an event ends the process.
  pool.on('error', (error) => options.log.warn({ err: error }, 'idle database connection lost'));
  pool.on('connect', (client) => {
    client.on('error', (error) => options.log.debug({ err: error }, 'database connection lost'));
  });
  return pool;
}

type TextParser = (text: string) => unknown;

function getTypeParser(oid: number, format?: 'text' | 'binary'): TextParser {
  return oid === pg.types.builtins.INT8 && format !== 'binary'
    ? parseInt8
    : pg.types.getTypeParser(oid, format);
}

function parseInt8(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

/** The pool for kysely: every error that means that PostgreSQL is away becomes AppError `unavailable`. */
export function reportingPool(pool: pg.Pool): PostgresPool {
  // kysely identifies connections by identity, so each client keeps one wrapper.
  const faces = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  const nameOf = statementNames();
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => {
      const client = await pool.connect().catch((error: unknown) => {
        throw unavailable(error) ?? error;
      });
      const face = faces.get(client) ?? reportingClient(client, nameOf);
      faces.set(client, face);
      return face;
    },
  };
}

type NameOf = (text: string) => string | undefined;

const mostNames = 256;

/**
 * Names statements with parameters, so that each connection parses them once. Statements beyond a maximum number stay
 * unnamed, and so do those with a star, whose columns a concurrent migration may change.
 */
function statementNames(): NameOf {
  const names = new Map<string, string>();
  return (text) => {
    const known = names.get(text);
    if (known !== undefined || names.size >= mostNames || text.includes('*')) return known;
    // Derived from the text: pools over the same connections must use one name for one statement.
    const name = `kit-${sha256Hex(text).slice(0, 32)}`;
    names.set(text, name);
    return name;
  };
}

function reportingClient(client: pg.PoolClient, nameOf: NameOf): PostgresPoolClient {
  let lost = false;
  const run = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    try {
      const name = values.length === 0 ? undefined : nameOf(text);
      return await client.query({ text, values: [...values], ...(name !== undefined && { name }) });
    } catch (error) {
      const away = unavailable(error);
      lost ||= away !== undefined;
      throw away ?? error;
    }
  };
  function query<R>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query(asked: string | PostgresCursor<unknown>, values: readonly unknown[] = []): unknown {
    if (typeof asked !== 'string') {
      throw new AppError('internal', 'CURSORS_UNSUPPORTED', 'Queries are not streamed through cursors');
    }
    return run(asked, values);
  }
  return {
    query,
    // A broken connection may look usable until its end is noticed; it must not serve the next request.
    release: (destroy) => client.release(lost || destroy),
  };
}

/** SQLSTATE of an error from PostgreSQL; undefined for any other value. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

const networkCodes = new Set([
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  // The error of a COPY stream whose connection is lost.
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_WRITE_AFTER_END',
]);
const lostConnection =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered|Client was closed|Cannot use a pool after|Query read timeout)/;

/**
 * The AppError of an error that means that PostgreSQL is away; undefined for every other error. Queries through `read`
 * and `transact` throw it already. It is for users of `Database.pool`, whose errors are those of pg and its streams.
 * When the connection is lost during a commit, the transaction may have committed.
 */
export function unavailable(error: unknown): AppError | undefined {
  if (!(error instanceof Error)) {
    return undefined;
  }
  const state = sqlState(error);
  const code = 'code' in error ? String(error.code) : '';
  const away =
    state === undefined
      ? networkCodes.has(code) || lostConnection.test(error.message)
      : isUnavailableState(state);
  return away
    ? new AppError('unavailable', genericCode('unavailable'), 'The database is not available.', {
        cause: error,
        retryAfterSeconds: 1,
      })
    : undefined;
}

/** Class 08 connection exceptions, 57P0x shutdown and start-up, 53300 too many connections. */
function isUnavailableState(state: string): boolean {
  return state.startsWith('08') || state.startsWith('57P0') || state === '53300';
}

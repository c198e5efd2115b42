import { createHash } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Database, Migration, Reader, Transactor } from './db.ts';

/** A request that its sender may repeat (the IETF draft "The Idempotency-Key HTTP Header Field"). */
export interface RepeatableRequest {
  /** Value of the header; undefined for a request that takes effect each time. */
  readonly key: string | readonly string[] | undefined;
  /** Caller and kind of the request: keys of different callers or for different kinds are distinct. */
  readonly scope: readonly string[];
  /** JSON that a repetition must repeat. Only its hash is stored. */
  readonly body: unknown;
}

/** Requests with a key take effect once in 24 hours. */
export interface Idempotency {
  /**
   * Runs `act`, or returns the answer that it gave to the same request before. Answers are stored as JSON. An error
   * that `act` throws is not stored, nor is an answer that `isKept` declines: the client may remove the cause and send
   * the request again.
   *
   * @throws AppError conflict IDEMPOTENCY_KEY_REUSED for another body, conflict IDEMPOTENCY_IN_PROGRESS while the first
   * request runs, invalid for an invalid key.
   */
  once<T>(request: RepeatableRequest, act: () => Promise<T>, isKept?: (answer: T) => boolean): Promise<T>;
}

interface IdempotencyOptions<DB> {
  readonly database: Database<DB>;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Claim {
  readonly keyHash: Buffer;
  readonly bodyHash: Buffer;
  readonly claimedAt: Date;
  /** Null until `act` has returned. */
  readonly answer: string | null;
}

interface StoredRow {
  readonly body_hash: Buffer;
  readonly answer: string | null;
}

const keptMs = 24 * 3_600_000;
/** An older claim without an answer was left by a crash, because no request runs longer. */
const abandonedMs = 120_000;
const purgeLimit = 100;
const keyPattern = /^[\x20-\x7e]{1,255}$/;

/**
 * The migration that creates the table `idempotency_keys`; place it in the component's list under a name of its order.
 *
 * @param earlier for a schema that has a table of this name in another shape: a query of (key_hash, body_hash, answer,
 * created_at) over it, whose rows the new table takes over.
 */
export function idempotencyMigration(name: string, earlier?: RawBuilder<unknown>): Migration {
  return {
    name,
    up: async (db) => {
      await sql`create table idempotency_keys_made (
        key_hash bytea not null,
        body_hash bytea not null,
        answer text,
        created_at timestamptz not null)`.execute(db);
      if (earlier !== undefined) {
        await sql`insert into idempotency_keys_made (key_hash, body_hash, answer, created_at) ${earlier}`.execute(
          db,
        );
        await sql`drop table idempotency_keys`.execute(db);
      }
      await sql`alter table idempotency_keys_made rename to idempotency_keys`.execute(db);
      await sql`alter table idempotency_keys add primary key (key_hash)`.execute(db);
      await sql`create index idempotency_keys_age on idempotency_keys (created_at)`.execute(db);
    },
  };
}

/** Stores answers in the table `idempotency_keys` of a component's schema. */
export function createIdempotency<DB>(options: IdempotencyOptions<DB>): Idempotency {
  return {
    async once(request, act, isKept = () => true) {
      if (request.key === undefined) return act();
      const claim = claimOf(request, options.clock.nowMs(), null);
      const known = await options.database.transact((tx) => take(tx, claim));
      if (known !== undefined) return JSON.parse(known);
      const answer = await act().catch(async (error: unknown) => {
        await settle(options, claim, undefined);
        throw error;
      });
      await settle(options, claim, isKept(answer) ? JSON.stringify(answer) : undefined);
      return answer;
    },
  };
}

/**
 * Finds the answer that is stored for a request, without claiming its key; undefined when it has none. For rows of an
 * earlier release with another scope.
 *
 * @throws AppError conflict IDEMPOTENCY_KEY_REUSED for another body, conflict IDEMPOTENCY_IN_PROGRESS while the first
 * request runs, invalid for an invalid key.
 */
export async function findAnswer<DB>(
  db: Reader<DB>,
  request: RepeatableRequest,
  nowMs: number,
): Promise<string | undefined> {
  if (request.key === undefined) return undefined;
  const { keyHash, bodyHash } = claimOf(request, nowMs, null);
  const { rows } = await sql<StoredRow>`
    select body_hash, answer from idempotency_keys where key_hash = ${keyHash}
      and created_at > ${new Date(nowMs - keptMs)}
      and (answer is not null or created_at > ${new Date(nowMs - abandonedMs)})`.execute(db);
  return rows.length === 0 ? undefined : answerOf(rows[0], bodyHash);
}

/**
 * Claims a key in the transaction that creates what the request asks for, with an answer that is known beforehand, such
 * as the id of the created resource. A second claim waits for the first one's transaction.
 *
 * @returns the answer of the first claim; undefined when this is the first.
 * @throws AppError conflict IDEMPOTENCY_KEY_REUSED for another body, invalid for an invalid key.
 */
export async function claimKey<DB>(
  tx: Transactor<DB>,
  request: RepeatableRequest,
  made: { readonly answer: string; readonly nowMs: number },
): Promise<string | undefined> {
  return request.key === undefined ? undefined : take(tx, claimOf(request, made.nowMs, made.answer));
}

function claimOf({ key, scope, body }: RepeatableRequest, nowMs: number, answer: string | null): Claim {
  if (typeof key !== 'string' || !keyPattern.test(key)) {
    throw new AppError(
      'invalid',
      genericCode('invalid'),
      'Idempotency-Key must be 1 to 255 printable characters.',
    );
  }
  return {
    keyHash: hash([...scope, key]),
    bodyHash: hash(body ?? null),
    claimedAt: new Date(nowMs),
    answer,
  };
}

function hash(value: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(value)).digest();
}

/** Takes the key for a claim, or returns the answer of an earlier claim. */
async function take<DB>(tx: Transactor<DB>, claim: Claim): Promise<string | undefined> {
  const { keyHash, bodyHash, claimedAt } = claim;
  const forgotten = new Date(claimedAt.getTime() - keptMs);
  const abandoned = new Date(claimedAt.getTime() - abandonedMs);
  await sql`delete from idempotency_keys where ctid = any (array(
    select ctid from idempotency_keys where created_at <= ${forgotten}
    limit ${purgeLimit} for update skip locked))`.execute(tx);
  const taken = await sql`
    insert into idempotency_keys as known (key_hash, body_hash, answer, created_at)
    values (${keyHash}, ${bodyHash}, ${claim.answer}, ${claimedAt})
    on conflict (key_hash) do update
      set body_hash = excluded.body_hash, answer = excluded.answer, created_at = excluded.created_at
      where known.created_at <= ${forgotten} or (known.answer is null and known.created_at <= ${abandoned})
    returning 1`.execute(tx);
  if (taken.rows.length === 1) return undefined;
  const { rows } = await sql<StoredRow>`
    select body_hash, answer from idempotency_keys where key_hash = ${keyHash}`.execute(tx);
  return answerOf(rows[0], bodyHash);
}

/** A claim that was deleted just now is reported as in progress: the client retries. */
function answerOf(known: StoredRow | undefined, bodyHash: Buffer): string {
  if (known !== undefined && !known.body_hash.equals(bodyHash)) {
    throw new AppError(
      'conflict',
      'IDEMPOTENCY_KEY_REUSED',
      'The Idempotency-Key was used with another body.',
    );
  }
  if (known === undefined || known.answer === null) {
    throw new AppError(
      'conflict',
      'IDEMPOTENCY_IN_PROGRESS',
      'A request with this Idempotency-Key is being worked on.',
      { retryAfterSeconds: 1 },
    );
  }
  return known.answer;
}

/**
 * Stores the answer of a claim, or releases the key. A failure here does not change the caller's answer: the act is
 * done, and a claim without an answer expires. A claim that another request took over in the meantime is not changed.
 */
async function settle<DB>(
  { database, log }: IdempotencyOptions<DB>,
  { keyHash, claimedAt }: Claim,
  answer: string | undefined,
): Promise<void> {
  const own = sql`key_hash = ${keyHash} and answer is null and created_at = ${claimedAt}`;
  const statement =
    answer === undefined
      ? sql`delete from idempotency_keys where ${own}`
      : sql`update idempotency_keys set answer = ${answer} where ${own}`;
  await database
    .transact((tx) => statement.execute(tx))
    .catch((error: unknown) => log.warn({ err: error }, 'the answer under an Idempotency-Key was not kept'));
}

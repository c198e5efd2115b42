import type pg from 'pg';
import { unavailable } from '#kit/db/db.ts';
import { statement } from '#kit/db/statement.ts';
import { GroupCommit } from './group-commit.ts';
import { decodeEarlier, encodeEarlier, type KeptMessage } from './kept-messages.ts';
import type { SigningAttempt } from './rules.ts';

/** Maximum number of signatures of one bucket in one window, over all replicas. */
export interface SignatureCap {
  readonly bucket: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

/** Messages of one round that take their positions together, by rising step. */
export interface GuardedBatch {
  readonly registerId: string;
  readonly validatorId: string;
  readonly height: bigint;
  readonly round: number;
  readonly messages: readonly [KeptMessage, ...KeptMessage[]];
  /** Lowest step that must be above the stored position; messages below it were signed before. */
  readonly firstStep: number;
}

/** The last position of a register and validator. */
export interface GuardPosition {
  readonly height: bigint;
  readonly round: bigint;
  readonly step: number;
  /** The messages that were signed with it, and its own; each may be repeated. */
  readonly kept: readonly KeptMessage[];
}

interface PositionRow extends KeptMessage {
  readonly height: string;
  readonly round: string;
  readonly earlier: Buffer | null;
}

/**
 * Each method is one statement, one round trip and one commit, so its outcome holds for all replicas. Concurrent calls of
 * `guard` share a statement.
 */
export interface SignerStore {
  /** Takes a signature from the bucket and writes the audit row of either outcome. */
  takeAudited(attempt: SigningAttempt, cap: SignatureCap): Promise<'Signed' | 'Refused'>;
  auditRefusal(attempt: SigningAttempt, reason: string): Promise<void>;
  retryAfterSeconds(registerId: string, cap: SignatureCap): Promise<number>;
  nextEpoch(validatorId: string): Promise<bigint>;
  /** The newest epoch, at least `held`, so that a restored older database does not fence the current stream. */
  raiseEpoch(validatorId: string, held: bigint): Promise<bigint>;
  currentEpoch(validatorId: string): Promise<bigint | undefined>;
  /** True when all positions were taken; false when the epoch is old or the first one is not above the stored position. */
  guard(batch: GuardedBatch, epoch: bigint): Promise<boolean>;
  position(of: Pick<GuardedBatch, 'registerId' | 'validatorId'>): Promise<GuardPosition | undefined>;
}

/** The columns of an audit row, and their values. */
const auditColumns =
  'caller, caller_subject, register_id, transaction_type, transaction_id, derivation_path, decision, reason';
const attemptValues = ':caller, :subject, :registerId, :transactionType, :transactionId, :derivationPath';

interface AttemptValues {
  readonly caller: string;
  readonly subject: string;
  readonly registerId: string;
  readonly transactionType: string;
  readonly transactionId: string;
  readonly derivationPath: string;
}

interface CapValues {
  readonly registerId: string;
  readonly bucket: string;
  readonly windowSeconds: number;
}

// The row stores the times of one sliding window, so the cap is exact at window boundaries. Concurrent statements queue
// on the row lock, and each reads the version that the previous one committed. Times are those of the database.
const takeAudited = statement<AttemptValues & CapValues & { readonly limit: number }>(
  `
  WITH taken AS (
    INSERT INTO signing_buckets AS b (register_id, derivation_path, recent)
    VALUES (:registerId, :bucket, ARRAY[clock_timestamp()])
    ON CONFLICT (register_id, derivation_path) DO UPDATE
      SET recent = ARRAY(
        SELECT t FROM unnest(b.recent) AS t
        WHERE t > clock_timestamp() - make_interval(secs => :windowSeconds) ORDER BY t
      ) || clock_timestamp()
      WHERE (
        SELECT count(*) FROM unnest(b.recent) AS t
        WHERE t > clock_timestamp() - make_interval(secs => :windowSeconds)
      ) < :limit::bigint
    RETURNING 1
  )
  INSERT INTO signing_audit (${auditColumns})
  SELECT ${attemptValues},
    CASE WHEN EXISTS (SELECT 1 FROM taken) THEN 'Signed' ELSE 'Refused' END,
    CASE WHEN EXISTS (SELECT 1 FROM taken) THEN NULL ELSE 'RATE_LIMITED' END
  RETURNING decision`,
  'signer-take',
);

const auditRefusal = statement<AttemptValues & { readonly reason: string }>(
  `INSERT INTO signing_audit (${auditColumns}) VALUES (${attemptValues}, 'Refused', :reason)`,
  'signer-refusal',
);

const retryAfter = statement<CapValues>(`
  SELECT greatest(1, ceil(extract(epoch FROM
    min(t) + make_interval(secs => :windowSeconds) - clock_timestamp())))::int AS seconds
  FROM signing_buckets, unnest(recent) AS t
  WHERE register_id = :registerId AND derivation_path = :bucket
    AND t > clock_timestamp() - make_interval(secs => :windowSeconds)`);

const nextEpoch = statement<{ readonly validatorId: string }>(`
  INSERT INTO signer_epochs AS e (validator_id, epoch) VALUES (:validatorId, 1)
  ON CONFLICT (validator_id) DO UPDATE SET epoch = e.epoch + 1, opened_at = clock_timestamp()
  RETURNING epoch::text AS epoch`);

const raiseEpoch = statement<{ readonly validatorId: string; readonly held: string }>(`
  INSERT INTO signer_epochs AS e (validator_id, epoch) VALUES (:validatorId, :held::bigint)
  ON CONFLICT (validator_id) DO UPDATE SET epoch = GREATEST(e.epoch, EXCLUDED.epoch)
  RETURNING epoch::text AS epoch`);

const currentEpoch = statement<{ readonly validatorId: string }>(
  'SELECT epoch::text AS epoch FROM signer_epochs WHERE validator_id = :validatorId',
  'signer-epoch',
);

/** Batches as the statement takes them, one array for each column; integers of 64 bits are text. */
interface GuardValues {
  readonly registerIds: readonly string[];
  readonly validatorIds: readonly string[];
  readonly epochs: readonly string[];
  readonly heights: readonly string[];
  readonly rounds: readonly number[];
  readonly firstSteps: readonly number[];
  readonly steps: readonly number[];
  readonly digests: readonly Buffer[];
  readonly signatures: readonly Buffer[];
  readonly earliers: readonly (Buffer | null)[];
}

// Safety depends only on the conflict clause: the row is locked, re-read and compared, so of two concurrent messages at
// one position the second sees the first. The epoch check may lag by one statement without harm. Statements of several
// replicas lock rows in one order, so that they cannot deadlock.
const takePositions = statement<GuardValues>(
  `
  INSERT INTO signing_guard AS g
    (register_id, validator_id, height, round, first_step, step, digest, signature, earlier)
  SELECT m.register_id, m.validator_id, m.height, m.round, m.first_step, m.step, m.digest, m.signature, m.earlier
  FROM unnest(:registerIds::text[], :validatorIds::text[], :epochs::bigint[], :heights::bigint[], :rounds::bigint[],
      :firstSteps::smallint[], :steps::smallint[], :digests::bytea[], :signatures::bytea[], :earliers::bytea[])
    AS m (register_id, validator_id, epoch, height, round, first_step, step, digest, signature, earlier)
  JOIN signer_epochs AS e ON e.validator_id = m.validator_id AND e.epoch = m.epoch
  ORDER BY m.register_id, m.validator_id
  ON CONFLICT (register_id, validator_id) DO UPDATE
    SET height = excluded.height, round = excluded.round, first_step = excluded.first_step, step = excluded.step,
        digest = excluded.digest, signature = excluded.signature, earlier = excluded.earlier
    WHERE (excluded.height, excluded.round, excluded.first_step) > (g.height, g.round, g.step)
  RETURNING g.register_id AS "registerId", g.validator_id AS "validatorId"`,
  'signer-guard',
);

const readPosition = statement<RowKey>(
  `
  SELECT height::text AS height, round::text AS round, step, digest, signature, earlier
  FROM signing_guard WHERE register_id = :registerId AND validator_id = :validatorId`,
  'signer-position',
);

type RunQuery = <R extends pg.QueryResultRow>(query: pg.QueryConfig) => Promise<R[]>;

/** pg reads the time from the query. */
interface TimedQuery extends pg.QueryConfig {
  readonly query_timeout: number;
}

/** Runs one statement on any connection. @throws AppError unavailable when the database cannot be reached */
function queryRunner(pool: pg.Pool, answerTimeoutMs: number): RunQuery {
  return async <R extends pg.QueryResultRow>(query: pg.QueryConfig) => {
    const timed: TimedQuery = { ...query, query_timeout: answerTimeoutMs };
    try {
      return (await pool.query<R>(timed)).rows;
    } catch (error) {
      throw unavailable(error) ?? error;
    }
  };
}

/**
 * Longest wait for the answer of a statement. It is longer than the statement timeout of the server, which ends the statements of
 * a server that answers. A host that vanishes ends no connection, and the statement in flight there would delay all others.
 */
const longestAnswerMs = 35_000;

/** A statement without an answer may have committed; the same messages then get their stored signatures. */
export function createSignerStore(pool: pg.Pool, answerTimeoutMs = longestAnswerMs): SignerStore {
  const runQuery = queryRunner(pool, answerTimeoutMs);
  const commits = new GroupCommit<GuardedRow>({
    limit: maxGuardedRows,
    keyOf: ({ batch }) => guardKey(batch),
    commit: async (rows) =>
      new Set((await runQuery<RowKey>(takePositions(guardValues(rows)))).map((row) => guardKey(row))),
  });
  return {
    async takeAudited(attempt, cap) {
      const query = takeAudited({ ...valuesOf(attempt), ...cap });
      const rows = await runQuery<{ decision: 'Signed' | 'Refused' }>(query);
      return rows[0]?.decision ?? 'Refused';
    },
    async auditRefusal(attempt, reason) {
      await runQuery(auditRefusal({ ...valuesOf(attempt), reason }));
    },
    async retryAfterSeconds(registerId, cap) {
      const rows = await runQuery<{ seconds: number | null }>(retryAfter({ ...cap, registerId }));
      return rows[0]?.seconds ?? 1;
    },
    async nextEpoch(validatorId) {
      const rows = await runQuery<{ epoch: string }>(nextEpoch({ validatorId }));
      return BigInt(rows[0]?.epoch ?? 0);
    },
    async raiseEpoch(validatorId, held) {
      const rows = await runQuery<{ epoch: string }>(raiseEpoch({ validatorId, held: String(held) }));
      return BigInt(rows[0]?.epoch ?? 0);
    },
    async currentEpoch(validatorId) {
      const rows = await runQuery<{ epoch: string }>(currentEpoch({ validatorId }));
      return rows[0] === undefined ? undefined : BigInt(rows[0].epoch);
    },
    guard: (batch, epoch) => commits.add({ batch, epoch }),
    async position({ registerId, validatorId }) {
      const [row] = await runQuery<PositionRow>(readPosition({ registerId, validatorId }));
      return row && guardPosition(row);
    },
  };
}

/** Bound of the rows that one statement locks. */
const maxGuardedRows = 256;

type RowKey = Pick<GuardedBatch, 'registerId' | 'validatorId'>;

interface GuardedRow {
  readonly batch: GuardedBatch;
  readonly epoch: bigint;
}

function guardKey({ registerId, validatorId }: RowKey): string {
  return `${registerId}/${validatorId}`;
}

function guardValues(rows: readonly GuardedRow[]): GuardValues {
  const batches = rows.map(({ batch }) => batch);
  const lasts = batches.map(({ messages: [first, ...later] }) => later.at(-1) ?? first);
  return {
    registerIds: batches.map(({ registerId }) => registerId),
    validatorIds: batches.map(({ validatorId }) => validatorId),
    epochs: rows.map(({ epoch }) => String(epoch)),
    heights: batches.map(({ height }) => String(height)),
    rounds: batches.map(({ round }) => round),
    firstSteps: batches.map(({ firstStep }) => firstStep),
    steps: lasts.map(({ step }) => step),
    digests: lasts.map(({ digest }) => digest),
    signatures: lasts.map(({ signature }) => signature),
    earliers: batches.map(({ messages }) => encodeEarlier(messages)),
  };
}

function guardPosition({ height, round, earlier, ...last }: PositionRow): GuardPosition {
  const { step, digest } = last;
  return {
    height: BigInt(height),
    round: BigInt(round),
    step,
    kept: [...decodeEarlier(earlier, digest), last],
  };
}

function valuesOf({ caller, ...attempt }: SigningAttempt): AttemptValues {
  return { ...attempt, caller: caller.spiffeId, subject: caller.subject };
}

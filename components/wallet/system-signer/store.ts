import type pg from 'pg';
import { unavailable } from '#kit/db/db.ts';
import type { SigningAttempt } from './rules.ts';

/** Maximum number of signatures of one bucket in one window, over all replicas. */
export interface SignatureCap {
  readonly bucket: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

/** Position of a consensus message and the digest of its bytes; `step` is 1 proposal, 2 prevote, 3 precommit. */
export interface GuardedMessage {
  readonly registerId: string;
  readonly validatorId: string;
  readonly height: bigint;
  readonly round: number;
  readonly step: number;
  readonly digest: Buffer;
  readonly signature: Buffer;
}

interface GuardPosition {
  readonly height: string;
  readonly round: string;
  readonly step: number;
  readonly sameDigest: boolean;
  readonly signature: Buffer;
}

/** Each method is one statement, one round trip and one commit, so its outcome holds for all replicas. */
export interface SignerStore {
  /** Takes a signature from the bucket and writes the audit row of either outcome. */
  takeAudited(attempt: SigningAttempt, cap: SignatureCap): Promise<'Signed' | 'Refused'>;
  auditRefusal(attempt: SigningAttempt, reason: string): Promise<void>;
  retryAfterSeconds(registerId: string, cap: SignatureCap): Promise<number>;
  nextEpoch(validatorId: string): Promise<bigint>;
  /** The newest epoch, at least `held`, so that a restored older database does not fence the current stream. */
  raiseEpoch(validatorId: string, held: bigint): Promise<bigint>;
  currentEpoch(validatorId: string): Promise<bigint | undefined>;
  /** True when the position was taken; false when the epoch is old or the position is not above the stored one. */
  guard(message: GuardedMessage, epoch: bigint): Promise<boolean>;
  position(message: GuardedMessage): Promise<GuardPosition | undefined>;
}

const AUDIT_COLUMNS =
  'caller, caller_subject, register_id, transaction_type, transaction_id, derivation_path, decision, reason';

// The row stores the times of one sliding window, so the cap is exact at window boundaries. Concurrent statements queue
// on the row lock, and each reads the version that the previous one committed. Times are those of the database.
const TAKE_AUDITED = `
  WITH taken AS (
    INSERT INTO signing_buckets AS b (register_id, derivation_path, recent)
    VALUES ($3, $7, ARRAY[clock_timestamp()])
    ON CONFLICT (register_id, derivation_path) DO UPDATE
      SET recent = ARRAY(
        SELECT t FROM unnest(b.recent) AS t WHERE t > clock_timestamp() - make_interval(secs => $9) ORDER BY t
      ) || clock_timestamp()
      WHERE (
        SELECT count(*) FROM unnest(b.recent) AS t WHERE t > clock_timestamp() - make_interval(secs => $9)
      ) < $8::bigint
    RETURNING 1
  )
  INSERT INTO signing_audit (${AUDIT_COLUMNS})
  SELECT $1, $2, $3, $4, $5, $6,
    CASE WHEN EXISTS (SELECT 1 FROM taken) THEN 'Signed' ELSE 'Refused' END,
    CASE WHEN EXISTS (SELECT 1 FROM taken) THEN NULL ELSE 'RATE_LIMITED' END
  RETURNING decision`;

const AUDIT_REFUSAL = `
  INSERT INTO signing_audit (${AUDIT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, 'Refused', $7)`;

const RETRY_AFTER = `
  SELECT greatest(1, ceil(extract(epoch FROM min(t) + make_interval(secs => $3) - clock_timestamp())))::int AS seconds
  FROM signing_buckets, unnest(recent) AS t
  WHERE register_id = $1 AND derivation_path = $2 AND t > clock_timestamp() - make_interval(secs => $3)`;

const NEXT_EPOCH = `
  INSERT INTO signer_epochs AS e (validator_id, epoch) VALUES ($1, 1)
  ON CONFLICT (validator_id) DO UPDATE SET epoch = e.epoch + 1, opened_at = clock_timestamp()
  RETURNING epoch::text AS epoch`;

const RAISE_EPOCH = `
  INSERT INTO signer_epochs AS e (validator_id, epoch) VALUES ($1, $2::bigint)
  ON CONFLICT (validator_id) DO UPDATE SET epoch = GREATEST(e.epoch, EXCLUDED.epoch)
  RETURNING epoch::text AS epoch`;

const CURRENT_EPOCH = 'SELECT epoch::text AS epoch FROM signer_epochs WHERE validator_id = $1';

// Safety depends only on the conflict clause: the row is locked, re-read and compared, so of two concurrent messages at
// one position the second sees the first. The epoch check may lag by one statement without harm.
const GUARD = `
  INSERT INTO signing_guard AS g (register_id, validator_id, height, round, step, digest, signature)
  SELECT $1, $2, $3::bigint, $4::bigint, $5::smallint, $6::bytea, $7::bytea
  WHERE EXISTS (SELECT 1 FROM signer_epochs WHERE validator_id = $2 AND epoch = $8::bigint)
  ON CONFLICT (register_id, validator_id) DO UPDATE
    SET height = excluded.height, round = excluded.round, step = excluded.step,
        digest = excluded.digest, signature = excluded.signature
    WHERE (excluded.height, excluded.round, excluded.step) > (g.height, g.round, g.step)
  RETURNING 1`;

const POSITION = `
  SELECT height::text AS height, round::text AS round, step, digest = $3::bytea AS "sameDigest", signature
  FROM signing_guard WHERE register_id = $1 AND validator_id = $2`;

type RunQuery = <R extends pg.QueryResultRow>(query: pg.QueryConfig) => Promise<R[]>;

/** Runs one statement on any connection. @throws AppError unavailable when the database cannot be reached */
function queryRunner(pool: pg.Pool): RunQuery {
  return async <R extends pg.QueryResultRow>(query: pg.QueryConfig) => {
    try {
      return (await pool.query<R>(query)).rows;
    } catch (error) {
      throw unavailable(error) ?? error;
    }
  };
}

export function createSignerStore(pool: pg.Pool): SignerStore {
  const runQuery = queryRunner(pool);
  return {
    async takeAudited(attempt, cap) {
      const values = [...auditValues(attempt), cap.bucket, cap.limit, cap.windowSeconds];
      const rows = await runQuery<{ decision: 'Signed' | 'Refused' }>({
        name: 'signer-take',
        text: TAKE_AUDITED,
        values,
      });
      return rows[0]?.decision ?? 'Refused';
    },
    async auditRefusal(attempt, reason) {
      await runQuery({
        name: 'signer-refusal',
        text: AUDIT_REFUSAL,
        values: [...auditValues(attempt), reason],
      });
    },
    async retryAfterSeconds(registerId, cap) {
      const values = [registerId, cap.bucket, cap.windowSeconds];
      const rows = await runQuery<{ seconds: number | null }>({ text: RETRY_AFTER, values });
      return rows[0]?.seconds ?? 1;
    },
    async nextEpoch(validatorId) {
      const rows = await runQuery<{ epoch: string }>({ text: NEXT_EPOCH, values: [validatorId] });
      return BigInt(rows[0]?.epoch ?? 0);
    },
    async raiseEpoch(validatorId, held) {
      const rows = await runQuery<{ epoch: string }>({
        text: RAISE_EPOCH,
        values: [validatorId, String(held)],
      });
      return BigInt(rows[0]?.epoch ?? 0);
    },
    async currentEpoch(validatorId) {
      const query = { name: 'signer-epoch', text: CURRENT_EPOCH, values: [validatorId] };
      const rows = await runQuery<{ epoch: string }>(query);
      return rows[0] === undefined ? undefined : BigInt(rows[0].epoch);
    },
    guard: (message, epoch) => takePosition(runQuery, message, epoch),
    async position(message) {
      const values = [message.registerId, message.validatorId, message.digest];
      const rows = await runQuery<GuardPosition>({ name: 'signer-position', text: POSITION, values });
      return rows[0];
    },
  };
}

async function takePosition(runQuery: RunQuery, message: GuardedMessage, epoch: bigint): Promise<boolean> {
  const { registerId, validatorId, height, round, step, digest, signature } = message;
  const rows = await runQuery({
    name: 'signer-guard',
    text: GUARD,
    values: [registerId, validatorId, String(height), round, step, digest, signature, String(epoch)],
  });
  return rows.length === 1;
}

function auditValues(attempt: SigningAttempt): string[] {
  const { caller, registerId, transactionType, transactionId, derivationPath } = attempt;
  return [caller.spiffeId, caller.subject, registerId, transactionType, transactionId, derivationPath];
}

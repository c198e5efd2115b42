import { sql } from 'kysely';
import type { PoolClient } from 'pg';
import { type Database, sqlState, unavailable } from '#kit/db/db.ts';
import { writePublications } from '../../blueprints/publications/store.ts';
import { withClient } from '../../database/client/store.ts';
import { defaultSegmentTransactions, type RegisterSchema } from '../../database/schema.ts';
import { writeProjection } from '../../governance/rules/store.ts';
import type { Segments } from '../segments/segments.ts';
import type { CommitOutcome, DocketCommit } from './commit/docket-commit.ts';
import { type CommitRequest, copyDocket, insertDocket } from './commit/store.ts';
import { findRepeated } from './repeated.ts';

/** Dockets in one partition of `docket_values` and of `transaction_rows`. */
const docketsPerPartition = 10_000;

const outcomeOfConstraint: Readonly<Record<string, CommitOutcome>> = {
  transaction_ids_pkey: 'already_sealed',
  transaction_successors_pkey: 'second_successor',
  transaction_ids_replay: 'replay',
  dockets_pkey: 'moved',
};

/** A unique violation of a partition's key carries the partition's name. */
const valueKey = /^docket_values_p\d+_pkey$/;

function refusedBy(error: unknown): CommitOutcome | undefined {
  if (!(error instanceof Error) || !('code' in error) || error.code !== '23505') return undefined;
  const constraint = 'constraint' in error ? String(error.constraint) : '';
  if (valueKey.test(constraint)) return 'moved';
  return outcomeOfConstraint[constraint];
}

/** Up to this many rows one statement is cheaper than the round trips of a transaction around COPY. */
const fewRows = 8;

async function writeInside(client: PoolClient, request: CommitRequest): Promise<CommitOutcome> {
  const { projection, registerNo, docket, transactions, publications } = request.commit;
  const small = transactions.length <= fewRows;
  const isAll = projection === undefined && publications.length === 0;
  if (small && isAll) return (await insertDocket(client, request)) ? 'stored' : 'moved';
  await client.query('begin');
  if (!(await (small ? insertDocket : copyDocket)(client, request))) {
    await client.query('rollback');
    return 'moved';
  }
  if (projection !== undefined) await writeProjection(client, registerNo, projection, docket.stored_at);
  await writePublications(client, { registerNo, docketNumber: docket.docket_number }, publications);
  await client.query('commit');
  return 'stored';
}

export interface DocketWriter {
  /** Commits one docket in one SQL transaction: value, keys, log nodes, head and outbox, or nothing. */
  commit(commit: DocketCommit): Promise<CommitOutcome>;
}

interface DocketWriterOptions {
  readonly database: Database<RegisterSchema>;
  readonly segments: Pick<Segments, 'of'>;
  /** Transactions that fill a key segment. */
  readonly segmentTransactions?: number | undefined;
}

/** The only writer of sealed history. COPY needs a raw connection, hence `pool` instead of a query builder. */
export function createDocketWriter({
  database,
  segments,
  segmentTransactions = defaultSegmentTransactions,
}: DocketWriterOptions): DocketWriter {
  const partitions = new Set<number>();

  async function ensurePartition(index: number): Promise<void> {
    if (partitions.has(index)) return;
    const from = index * docketsPerPartition;
    await database.transact(async (tx) => {
      await sql`select pg_advisory_xact_lock(hashtext('register.transactions.partitions'))`.execute(tx);
      const table = sql.table(`transactions_p${index}`);
      const range = sql`for values from (${sql.lit(from)}) to (${sql.lit(from + docketsPerPartition)})`;
      await sql`create table if not exists ${table} partition of transaction_rows ${range}`.execute(tx);
      const values = sql.table(`docket_values_p${index}`);
      await sql`create table if not exists ${values} partition of docket_values ${range}`.execute(tx);
      // as in migration 0008; each partition has its own setting
      await sql`alter table ${table} alter column register_no set (n_distinct = 1)`.execute(tx);
    });
    partitions.add(index);
  }

  return {
    async commit(commit) {
      const repeated = await findRepeated(database.read, segments.of(commit), commit);
      if (repeated !== undefined) return repeated;
      const number = commit.docket.docket_number;
      const index = Math.floor(number / docketsPerPartition);
      await ensurePartition(index);
      // The next partition is created long before it is needed: creating one locks the parent briefly.
      if (number % docketsPerPartition > docketsPerPartition / 2) await ensurePartition(index + 1);
      try {
        return await withClient(database, (client) => writeInside(client, { commit, segmentTransactions }));
      } catch (error) {
        // a restored database may lack a partition that was created after the backup
        if (sqlState(error) === '23514') partitions.clear();
        const outcome = refusedBy(error);
        if (outcome !== undefined) return outcome;
        // the docket may have been stored nevertheless; a retry finds out
        throw unavailable(error) ?? error;
      }
    },
  };
}

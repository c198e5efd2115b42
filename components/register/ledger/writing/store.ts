import { finished } from 'node:stream/promises';
import { sql } from 'kysely';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { StoredEventData } from '#core/events/register-events.ts';
import { type Database, unavailable } from '#kit/db/db.ts';
import { writePublications } from '../../blueprints/publications/store.ts';
import { type RegisterSchema, SEGMENT_TRANSACTIONS } from '../../database/schema.ts';
import { traceId } from '../../database/trace.ts';
import { writeProjection } from '../../governance/rules/store.ts';
import type { Segments } from '../segments/segments.ts';
import { type CommitOutcome, copyBuffer, type DocketCommit } from './commit.ts';
import { findRepeated } from './repeated.ts';

/** Dockets in one partition of `transactions`. */
const docketsPerPartition = 10_000;

const copyTransactions = `copy transactions (register_no, docket_number, position, tx_id, type, sender_address,
  blueprint_id, action_id, previous_tx_id, created_micros, leaf, payload_hash_form, record, payload)
  from stdin (format binary)`;

/** Replay keys are passed as one concatenated value: PostgreSQL reads an array element by scanning up to it. */
const replayKeyBytes = 16;
const noReplayKey = '00'.repeat(replayKeyBytes);

/** Transaction rows that were loaded with COPY. */
const copiedRows = `
  select tx_id, position, type, sender_address, blueprint_id from transactions where register_no = $1 and docket_number = $2::bigint`;

/** The transaction rows of a small docket, passed as arrays. */
const insertedRows = `
  insert into transactions (register_no, docket_number, position, tx_id, type, sender_address, blueprint_id, action_id,
    previous_tx_id, created_micros, leaf, payload_hash_form, record, payload)
  select $1, $2::bigint, t.position - 1, t.tx_id, t.type, t.sender_address, t.blueprint_id, t.action_id,
    t.previous_tx_id, t.created_micros, t.leaf, t.payload_hash_form, t.record, t.payload
  from head, unnest($32::bytea[], $33::text[], $34::text[], $35::text[], $36::text[], $37::bytea[], $38::bigint[],
    $39::bytea[], $40::text[], $41::bytea[], $42::bytea[]) with ordinality as t(tx_id, type, sender_address,
    blueprint_id, action_id, previous_tx_id, created_micros, leaf, payload_hash_form, record, payload, position)
  returning tx_id, position, type, sender_address, blueprint_id`;

/**
 * Commits a docket in one statement, except for rows loaded with COPY. The update of the head is the gate: when the
 * head has moved nothing is written and no row is returned. The genesis docket opens the register and deletes its work
 * row.
 */
const commitWith = (rows: string) => `
with head as (
  update register_heads set height = $2::bigint + 1, head_hash = $3, head_timestamp = $4, log_frontier = $5,
    transaction_count = transaction_count + $6, size_bytes = size_bytes + $7,
    segment = segment + (segment_count + $6 >= $31::bigint)::integer,
    segment_count = case when segment_count + $6 >= $31::bigint then 0 else segment_count + $6 end
  where register_no = $1 and height = $2::bigint and head_hash = $8 and segment = $30::integer
    and not exists (select 1 from registers r where r.register_no = $1 and r.status in ('Halted', 'Deleted'))
  returning transaction_count - $6 as first_ordinal
), docket as (
  insert into dockets (register_no, docket_number, hash, previous_hash, timestamp, size_bytes, transaction_count,
    merkle_root, log_root, validator_set_hash, validator_address, is_genesis, genesis_config, certificate, stored_at,
    first_ordinal)
  select $1, $2::bigint, $3, $9, $4, $7, $6, $10, $11, $12, $13, $14, $15, $16, $17, first_ordinal from head
), rows as (${rows}
), ids as (
  insert into transaction_ids (register_no, segment, tx_id, docket_number, position, type, replay_key)
  select $1, $30::integer, tx_id, $2::bigint, position, type,
    nullif(substring($26::bytea from position * ${replayKeyBytes} + 1 for ${replayKeyBytes}), decode('${noReplayKey}', 'hex'))
  from rows
), successors as (
  insert into transaction_successors (register_no, segment, previous_tx_id, tx_id)
  select $1, $30::integer, previous_tx_id, tx_id from head, unnest($18::bytea[], $19::bytea[]) as link(previous_tx_id, tx_id)
), senders as (
  insert into sender_counters (register_no, sender_address, transaction_count)
  select $1, sender_address, count(*) from rows group by sender_address
  on conflict (register_no, sender_address)
    do update set transaction_count = sender_counters.transaction_count + excluded.transaction_count
), blueprints as (
  insert into blueprint_counters (register_no, blueprint_id, transaction_count)
  select $1, blueprint_id, count(*) from rows where octet_length(blueprint_id) <= 256 group by blueprint_id
  on conflict (register_no, blueprint_id)
    do update set transaction_count = blueprint_counters.transaction_count + excluded.transaction_count
), recipients as (
  insert into transaction_recipients (register_no, address, docket_number, position)
  select $1, address, $2::bigint, position from head, unnest($27::text[], $28::integer[]) as r(address, position)
  returning address, position
), received as (
  insert into recipient_counters (register_no, address, transaction_count, sent_count)
  select $1, address, count(*), count(*) filter (where sender_address = address)
  from recipients join rows using (position) group by address
  on conflict (register_no, address)
    do update set transaction_count = recipient_counters.transaction_count + excluded.transaction_count,
      sent_count = recipient_counters.sent_count + excluded.sent_count
), participants as (
  insert into participant_keys (register_no, address, participant_id, public_key, algorithm, status)
  select $1, p.* from head, jsonb_to_recordset($29::jsonb)
    as p("walletAddress" text, "participantId" text, "publicKey" text, algorithm text, status text)
  on conflict (register_no, address) do update set participant_id = excluded.participant_id,
    public_key = excluded.public_key, algorithm = excluded.algorithm, status = excluded.status
), nodes as (
  insert into log_nodes (register_no, level, position, hash)
  select $1, level, position, hash from head, unnest($20::smallint[], $21::bigint[], $22::bytea[]) as n(level, position, hash)
), attested as (
  insert into docket_attestations (register_no, docket_number, validator_address, attestation)
  select $1, $2::bigint, a->>'validatorAddress', a from head, jsonb_array_elements($23::jsonb) as a
), opened as (
  update registers set status = 'Online', updated_at = $17
  where register_no = $1 and $14 and status = 'Checking' and exists (select 1 from head)
), done as (
  delete from genesis_work where register_no = $1 and $14 and exists (select 1 from head)
), told as (
  insert into outbox (kind, key, data) select 'DocketSealed', $24, $25::jsonb from head
)
select first_ordinal from head`;

interface Write {
  readonly commit: DocketCommit;
  readonly segmentTransactions: number;
}

function restValues({ commit, segmentTransactions }: Write): unknown[] {
  const { docket } = commit;
  const links = commit.transactions.filter((one) => one.onlySuccessor);
  const received = commit.transactions.flatMap((one, position) =>
    one.recipients.map((address) => ({ address, position })),
  );
  const event: StoredEventData<'DocketSealed'> = {
    registerId: commit.registerId,
    docketNumber: docket.docket_number,
    hash: docket.hash,
    transactionCount: docket.transaction_count,
    traceId: traceId(),
  };
  return [
    commit.registerNo,
    docket.docket_number,
    docket.hash,
    docket.timestamp,
    Buffer.from(commit.frontier),
    docket.transaction_count,
    docket.size_bytes,
    docket.is_genesis ? '' : docket.previous_hash,
    docket.previous_hash,
    docket.merkle_root,
    docket.log_root,
    docket.validator_set_hash,
    docket.validator_address,
    docket.is_genesis,
    docket.genesis_config,
    docket.certificate,
    docket.stored_at,
    links.map((one) => Buffer.from(one.previousTxId ?? '', 'hex')),
    links.map((one) => Buffer.from(one.txId, 'hex')),
    commit.nodes.map((node) => node.level),
    commit.nodes.map((node) => node.index),
    commit.nodes.map((node) => Buffer.from(node.hash)),
    JSON.stringify(commit.attestations),
    commit.registerId,
    JSON.stringify(event),
    Buffer.from(commit.transactions.map((one) => one.replayKey ?? noReplayKey).join(''), 'hex'),
    received.map((one) => one.address),
    received.map((one) => one.position),
    JSON.stringify(commit.participants),
    commit.segment,
    segmentTransactions,
  ];
}

/** Columns of the rows, in the form that `insertedRows` expects. */
function rowValues({ transactions }: DocketCommit): unknown[] {
  const idOf = (id: string | undefined) => (id === undefined ? null : Buffer.from(id, 'hex'));
  return [
    transactions.map((one) => idOf(one.txId)),
    transactions.map((one) => one.type),
    transactions.map((one) => one.senderAddress),
    transactions.map((one) => one.blueprintId ?? null),
    transactions.map((one) => one.actionId ?? null),
    transactions.map((one) => idOf(one.previousTxId)),
    transactions.map((one) => one.createdMicros),
    transactions.map((one) => Buffer.from(one.leaf)),
    transactions.map((one) => one.payloadHashForm),
    transactions.map((one) => Buffer.from(one.record)),
    transactions.map((one) => Buffer.from(one.payload)),
  ];
}

const outcomeOfConstraint: Readonly<Record<string, CommitOutcome>> = {
  transaction_ids_pkey: 'already_sealed',
  transaction_successors_pkey: 'second_successor',
  transaction_ids_replay: 'replay',
  dockets_pkey: 'moved',
};

/** A unique violation of a partition's key carries the partition's name. */
function refusedBy(error: unknown): CommitOutcome | undefined {
  if (!(error instanceof Error) || !('code' in error) || error.code !== '23505') return undefined;
  const constraint = 'constraint' in error ? String(error.constraint) : '';
  if (/^transactions_p\d+_pkey$/.test(constraint)) return 'moved';
  return outcomeOfConstraint[constraint];
}

/** Up to this many rows one statement is cheaper than the round trips of a transaction around COPY. */
const fewRows = 8;

async function insertSmall(client: PoolClient, write: Write): Promise<boolean> {
  const values = [...restValues(write), ...rowValues(write.commit)];
  const head = await client.query({ name: 'commit-small', text: commitWith(insertedRows), values });
  return head.rowCount !== 0;
}

async function copyLarge(client: PoolClient, write: Write): Promise<boolean> {
  const stream = client.query(copyFrom(copyTransactions));
  stream.end(copyBuffer(write.commit));
  await finished(stream);
  const values = restValues(write);
  const head = await client.query({ name: 'commit-docket', text: commitWith(copiedRows), values });
  return head.rowCount !== 0;
}

async function writeInside(client: PoolClient, write: Write): Promise<CommitOutcome> {
  const { projection, registerNo, docket, transactions, publications } = write.commit;
  const small = transactions.length <= fewRows;
  const isAll = projection === undefined && publications.length === 0;
  if (small && isAll) return (await insertSmall(client, write)) ? 'stored' : 'moved';
  await client.query('begin');
  if (!(await (small ? insertSmall : copyLarge)(client, write))) {
    await client.query('rollback');
    return 'moved';
  }
  if (projection !== undefined) await writeProjection(client, registerNo, projection, docket.stored_at);
  await writePublications(client, { registerNo, docketNumber: docket.docket_number }, publications);
  await client.query('commit');
  return 'stored';
}

async function connect(database: Database<RegisterSchema>): Promise<PoolClient> {
  try {
    return await database.pool.connect();
  } catch (error) {
    throw unavailable(error) ?? error;
  }
}

export interface DocketWriter {
  /** Commits one docket in one SQL transaction: rows, ids, counters, log nodes, head and outbox, or nothing. */
  commit(commit: DocketCommit): Promise<CommitOutcome>;
}

export interface DocketWriterOptions {
  readonly database: Database<RegisterSchema>;
  readonly segments: Pick<Segments, 'of'>;
  /** Transactions that fill a key segment. */
  readonly segmentTransactions?: number | undefined;
}

/** The only writer of sealed history. COPY needs a raw connection, hence `pool` instead of a query builder. */
export function createDocketWriter({
  database,
  segments,
  segmentTransactions = SEGMENT_TRANSACTIONS,
}: DocketWriterOptions): DocketWriter {
  const partitions = new Set<number>();

  async function ensurePartition(index: number): Promise<void> {
    if (partitions.has(index)) return;
    const from = index * docketsPerPartition;
    await database.transact(async (tx) => {
      await sql`select pg_advisory_xact_lock(hashtext('register.transactions.partitions'))`.execute(tx);
      const table = sql.table(`transactions_p${index}`);
      await sql`create table if not exists ${table} partition of transactions
        for values from (${sql.lit(from)}) to (${sql.lit(from + docketsPerPartition)})`.execute(tx);
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
      const client = await connect(database);
      let broken: Error | undefined;
      const onLost = (error: Error) => {
        broken = error;
      };
      // A lost connection emits an error while it is checked out; without a listener that ends the process.
      client.on('error', onLost);
      try {
        return await writeInside(client, { commit, segmentTransactions });
      } catch (error) {
        await client.query('rollback').catch(onLost);
        const outcome = refusedBy(error);
        if (outcome !== undefined) return outcome;
        // the docket may have been stored nevertheless; a retry finds out
        throw unavailable(error) ?? error;
      } finally {
        client.off('error', onLost);
        client.release(broken);
      }
    },
  };
}

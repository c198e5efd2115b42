import type { PoolClient } from 'pg';
import type { StoredEventData } from '#core/events/register-events.ts';
import { statement } from '#kit/db/statement.ts';
import { currentTraceId } from '#kit/telemetry/telemetry.ts';
import { copyRows } from '../../../database/client/store.ts';
import { encodeValue } from '../../values/format.ts';
import { type DocketCommit, idsBuffer, successorsBuffer } from './docket-commit.ts';

/** A docket to commit. */
export interface CommitRequest {
  readonly commit: DocketCommit;
  /** Transactions that fill a key segment. */
  readonly segmentTransactions: number;
}

/**
 * One common table expression of the commit, with the values of its parameters. Parts that depend on the gate select
 * from `head`, which has no row when the head has moved.
 */
interface Part {
  readonly name: string;
  readonly sql: string;
  readonly values?: (request: CommitRequest) => object;
}

const bytesOf = (id: string | undefined) => (id === undefined ? null : Buffer.from(id, 'hex'));

/** Values that several parts use. */
function commonValues({ commit }: CommitRequest) {
  const { docket } = commit;
  return {
    registerNo: commit.registerNo,
    segment: commit.segment,
    docketNumber: docket.docket_number,
    hash: docket.hash,
    transactionCount: docket.transaction_count,
    sizeBytes: docket.size_bytes,
    timestamp: docket.timestamp,
    isGenesis: docket.is_genesis,
    storedAt: docket.stored_at,
  };
}

/** The gate: the head advances when it is the one that the docket was judged against, and the register is open. */
const head: Part = {
  name: 'head',
  sql: `
  update register_heads set height = :docketNumber::bigint + 1, head_hash = :hash, head_timestamp = :timestamp,
    log_frontier = :frontier, transaction_count = transaction_count + :transactionCount,
    size_bytes = size_bytes + :sizeBytes,
    segment = segment + (segment_count + :transactionCount >= :segmentTransactions::bigint)::integer,
    segment_count = case when segment_count + :transactionCount >= :segmentTransactions::bigint then 0
      else segment_count + :transactionCount end
  where register_no = :registerNo and height = :docketNumber::bigint and head_hash = :headHash
    and segment = :segment::integer
    and not exists (select 1 from registers r where r.register_no = :registerNo and r.status in ('Halted', 'Deleted'))
  returning transaction_count - :transactionCount as first_ordinal`,
  values: ({ commit, segmentTransactions }) => ({
    frontier: Buffer.from(commit.frontier),
    headHash: commit.docket.is_genesis ? '' : commit.docket.previous_hash,
    segmentTransactions,
  }),
};

const docketRow: Part = {
  name: 'docket',
  sql: `
  insert into dockets (register_no, docket_number, hash, previous_hash, timestamp, size_bytes, transaction_count,
    merkle_root, log_root, validator_set_hash, validator_address, is_genesis, genesis_config, certificate, stored_at,
    first_ordinal)
  select :registerNo, :docketNumber::bigint, :hash, :previousHash, :timestamp, :sizeBytes, :transactionCount,
    :merkleRoot, :logRoot, :validatorSetHash, :validatorAddress, :isGenesis, :genesisConfig, :certificate, :storedAt,
    first_ordinal
  from head`,
  values: ({ commit: { docket } }) => ({
    previousHash: docket.previous_hash,
    merkleRoot: docket.merkle_root,
    logRoot: docket.log_root,
    validatorSetHash: docket.validator_set_hash,
    validatorAddress: docket.validator_address,
    genesisConfig: docket.genesis_config,
    certificate: docket.certificate,
  }),
};

/** All transactions of the docket as one value. */
const value: Part = {
  name: 'docket_value',
  sql: `
  insert into docket_values (register_no, docket_number, value)
  select :registerNo, :docketNumber::bigint, :value::bytea from head`,
  values: ({ commit }) => ({ value: encodeValue(commit.transactions) }),
};

const ids: Part = {
  name: 'ids',
  sql: `
  insert into transaction_ids (register_no, segment, tx_id, docket_number, position, type, replay_key,
    is_step)
  select :registerNo, :segment::integer, t.tx_id, :docketNumber::bigint, t.position - 1, t.type, t.replay_key, t.is_step
  from head, unnest(:txIds::bytea[], :types::text[], :replayKeys::bytea[], :steps::boolean[]) with ordinality
    as t(tx_id, type, replay_key, is_step, position)`,
  values: ({ commit: { transactions } }) => ({
    txIds: transactions.map((one) => bytesOf(one.txId)),
    types: transactions.map((one) => one.type),
    replayKeys: transactions.map((one) => bytesOf(one.replayKey)),
    steps: transactions.map((one) => one.isStep || null),
  }),
};

const successors: Part = {
  name: 'successors',
  sql: `
  insert into transaction_successors (register_no, segment, previous_tx_id, tx_id)
  select :registerNo, :segment::integer, previous_tx_id, tx_id
  from head, unnest(:followedTxIds::bytea[], :followingTxIds::bytea[]) as link(previous_tx_id, tx_id)`,
  values: ({ commit: { transactions } }) => {
    const links = transactions.filter((one) => one.onlySuccessor);
    return {
      followedTxIds: links.map((one) => Buffer.from(one.previousTxId ?? '', 'hex')),
      followingTxIds: links.map((one) => bytesOf(one.txId)),
    };
  },
};

const participants: Part = {
  name: 'participants',
  sql: `
  insert into participant_keys (register_no, address, participant_id, public_key, algorithm, status,
    encryption_algorithm, encryption_key)
  select :registerNo, p.* from head, jsonb_to_recordset(:participants::jsonb)
    as p("walletAddress" text, "participantId" text, "publicKey" text, algorithm text, status text,
      "encryptionAlgorithm" text, "encryptionKey" text)
  on conflict (register_no, address) do update set participant_id = excluded.participant_id,
    public_key = excluded.public_key, algorithm = excluded.algorithm, status = excluded.status,
    encryption_algorithm = excluded.encryption_algorithm, encryption_key = excluded.encryption_key`,
  values: ({ commit }) => ({
    participants: JSON.stringify(
      commit.participants.map(({ encryptionKey, ...key }) => ({
        ...key,
        encryptionAlgorithm: encryptionKey?.algorithm,
        encryptionKey: encryptionKey?.publicKey,
      })),
    ),
  }),
};

const logNodes: Part = {
  name: 'nodes',
  sql: `
  insert into log_nodes (register_no, level, position, hash)
  select :registerNo, level, position, hash
  from head, unnest(:nodeLevels::smallint[], :nodePositions::bigint[], :nodeHashes::bytea[]) as n(level, position, hash)`,
  values: ({ commit: { nodes } }) => ({
    nodeLevels: nodes.map((node) => node.level),
    nodePositions: nodes.map((node) => node.index),
    nodeHashes: nodes.map((node) => Buffer.from(node.hash)),
  }),
};

const attestations: Part = {
  name: 'attested',
  sql: `
  insert into docket_attestations (register_no, docket_number, validator_address, attestation)
  select :registerNo, :docketNumber::bigint, a->>'validatorAddress', a
  from head, jsonb_array_elements(:attestations::jsonb) as a`,
  values: ({ commit }) => ({ attestations: JSON.stringify(commit.attestations) }),
};

/** The genesis docket opens the register and deletes its work row. */
const opening: readonly Part[] = [
  {
    name: 'opened',
    sql: `
  update registers set status = 'Online', updated_at = :storedAt
  where register_no = :registerNo and :isGenesis and status = 'Checking' and exists (select 1 from head)`,
  },
  {
    name: 'genesis_done',
    sql: `
  delete from genesis_work where register_no = :registerNo and :isGenesis and exists (select 1 from head)`,
  },
];

const event: Part = {
  name: 'event',
  sql: `
  insert into outbox (kind, key, data) select 'DocketSealed', :registerId, :event::jsonb from head`,
  values: ({ commit: { registerId, docket } }) => {
    const data: StoredEventData<'DocketSealed'> = {
      registerId,
      docketNumber: docket.docket_number,
      hash: docket.hash,
      transactionCount: docket.transaction_count,
      traceId: currentTraceId(),
    };
    return { registerId, event: JSON.stringify(data) };
  },
};

/** The parts of a commit in order: a part may select from those before it. */
const parts: readonly Part[] = [
  head,
  docketRow,
  value,
  participants,
  logNodes,
  attestations,
  ...opening,
  event,
];

/** One statement of parts. When the head has moved nothing is written and no row is returned. */
function commitStatement(name: string, all: readonly Part[]) {
  const expressions = all.map((part) => `${part.name} as (${part.sql}\n)`).join(', ');
  const commit = statement<object>(`with ${expressions}\nselect first_ordinal from head`, name);
  return (request: CommitRequest) =>
    commit(Object.assign(commonValues(request), ...all.map((part) => part.values?.(request))));
}

const commitSmall = commitStatement('commit-small', [...parts, ids, successors]);
const commitWithoutKeys = commitStatement('commit-docket', parts);

/** Commits a docket of few transactions in one statement; false when the head has moved. */
export async function insertDocket(client: PoolClient, request: CommitRequest): Promise<boolean> {
  const result = await client.query(commitSmall(request));
  return result.rowCount !== 0;
}

const copyIds = `copy transaction_ids (register_no, segment, tx_id, docket_number, position, type, replay_key,
  is_step) from stdin (format binary)`;
const copySuccessors = `copy transaction_successors (register_no, segment, previous_tx_id, tx_id)
  from stdin (format binary)`;

/**
 * Commits a docket with one statement, and its keys with COPY; false when the head has moved, and then nothing is
 * written. The update of the head precedes the keys: a docket that another process has stored is no repetition.
 */
export async function copyDocket(client: PoolClient, request: CommitRequest): Promise<boolean> {
  const result = await client.query(commitWithoutKeys(request));
  if (result.rowCount === 0) return false;
  await copyRows(client, copyIds, idsBuffer(request.commit));
  const links = successorsBuffer(request.commit);
  if (links !== undefined) await copyRows(client, copySuccessors, links);
  return true;
}

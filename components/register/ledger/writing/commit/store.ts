import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { StoredEventData } from '#core/events/register-events.ts';
import { statement } from '#kit/db/statement.ts';
import { traceId } from '../../../database/trace.ts';
import { copyBuffer, type DocketCommit } from './docket-commit.ts';

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

/** Replay keys are passed as one concatenated value: PostgreSQL reads an array element by scanning up to it. */
const replayKeyBytes = 16;
const noReplayKey = '00'.repeat(replayKeyBytes);

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

/** Transaction rows that were loaded with COPY. */
const copiedRows: Part = {
  name: 'rows',
  sql: `
  select tx_id, position, type, sender_address, blueprint_id from transactions
  where register_no = :registerNo and docket_number = :docketNumber::bigint`,
};

/** The transaction rows of a small docket, passed as arrays. */
const insertedRows: Part = {
  name: 'rows',
  sql: `
  insert into transactions (register_no, docket_number, position, tx_id, type, sender_address, blueprint_id, action_id,
    previous_tx_id, created_micros, leaf, payload_hash_form, record, payload)
  select :registerNo, :docketNumber::bigint, t.position - 1, t.tx_id, t.type, t.sender_address, t.blueprint_id,
    t.action_id, t.previous_tx_id, t.created_micros, t.leaf, t.payload_hash_form, t.record, t.payload
  from head, unnest(:txIds::bytea[], :types::text[], :senders::text[], :blueprintIds::text[], :actionIds::text[],
    :previousTxIds::bytea[], :createdMicros::bigint[], :leaves::bytea[], :payloadHashForms::text[], :records::bytea[],
    :payloads::bytea[]) with ordinality as t(tx_id, type, sender_address, blueprint_id, action_id, previous_tx_id,
    created_micros, leaf, payload_hash_form, record, payload, position)
  returning tx_id, position, type, sender_address, blueprint_id`,
  values: ({ commit: { transactions } }) => ({
    txIds: transactions.map((one) => bytesOf(one.txId)),
    types: transactions.map((one) => one.type),
    senders: transactions.map((one) => one.senderAddress),
    blueprintIds: transactions.map((one) => one.blueprintId ?? null),
    actionIds: transactions.map((one) => one.actionId ?? null),
    previousTxIds: transactions.map((one) => bytesOf(one.previousTxId)),
    createdMicros: transactions.map((one) => one.createdMicros),
    leaves: transactions.map((one) => Buffer.from(one.leaf)),
    payloadHashForms: transactions.map((one) => one.payloadHashForm),
    records: transactions.map((one) => Buffer.from(one.record)),
    payloads: transactions.map((one) => Buffer.from(one.payload)),
  }),
};

const ids: Part = {
  name: 'ids',
  sql: `
  insert into transaction_ids (register_no, segment, tx_id, docket_number, position, type, replay_key)
  select :registerNo, :segment::integer, tx_id, :docketNumber::bigint, position, type,
    nullif(substring(:replayKeys::bytea from position * ${replayKeyBytes} + 1 for ${replayKeyBytes}), decode('${noReplayKey}', 'hex'))
  from rows`,
  values: ({ commit: { transactions } }) => ({
    replayKeys: Buffer.from(transactions.map((one) => one.replayKey ?? noReplayKey).join(''), 'hex'),
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

const senderTotals: Part = {
  name: 'sender_totals',
  sql: `
  insert into sender_counters (register_no, sender_address, transaction_count)
  select :registerNo, sender_address, count(*) from rows group by sender_address
  on conflict (register_no, sender_address)
    do update set transaction_count = sender_counters.transaction_count + excluded.transaction_count`,
};

const blueprintTotals: Part = {
  name: 'blueprint_totals',
  sql: `
  insert into blueprint_counters (register_no, blueprint_id, transaction_count)
  select :registerNo, blueprint_id, count(*) from rows where octet_length(blueprint_id) <= 256 group by blueprint_id
  on conflict (register_no, blueprint_id)
    do update set transaction_count = blueprint_counters.transaction_count + excluded.transaction_count`,
};

const recipients: Part = {
  name: 'recipients',
  sql: `
  insert into transaction_recipients (register_no, address, docket_number, position)
  select :registerNo, address, :docketNumber::bigint, position
  from head, unnest(:recipientAddresses::text[], :recipientPositions::integer[]) as r(address, position)
  returning address, position`,
  values: ({ commit: { transactions } }) => {
    const received = transactions.flatMap((one, position) =>
      one.recipients.map((address) => ({ address, position })),
    );
    return {
      recipientAddresses: received.map((one) => one.address),
      recipientPositions: received.map((one) => one.position),
    };
  },
};

const recipientTotals: Part = {
  name: 'recipient_totals',
  sql: `
  insert into recipient_counters (register_no, address, transaction_count, sent_count)
  select :registerNo, address, count(*), count(*) filter (where sender_address = address)
  from recipients join rows using (position) group by address
  on conflict (register_no, address)
    do update set transaction_count = recipient_counters.transaction_count + excluded.transaction_count,
      sent_count = recipient_counters.sent_count + excluded.sent_count`,
};

const participants: Part = {
  name: 'participants',
  sql: `
  insert into participant_keys (register_no, address, participant_id, public_key, algorithm, status)
  select :registerNo, p.* from head, jsonb_to_recordset(:participants::jsonb)
    as p("walletAddress" text, "participantId" text, "publicKey" text, algorithm text, status text)
  on conflict (register_no, address) do update set participant_id = excluded.participant_id,
    public_key = excluded.public_key, algorithm = excluded.algorithm, status = excluded.status`,
  values: ({ commit }) => ({ participants: JSON.stringify(commit.participants) }),
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
      traceId: traceId(),
    };
    return { registerId, event: JSON.stringify(data) };
  },
};

/** The parts of a commit in order: a part may select from those before it. */
const partsWith = (rows: Part): readonly Part[] => [
  head,
  docketRow,
  rows,
  ids,
  successors,
  senderTotals,
  blueprintTotals,
  recipients,
  recipientTotals,
  participants,
  logNodes,
  attestations,
  ...opening,
  event,
];

/**
 * Commits a docket in one statement, except for rows loaded with COPY. When the head has moved nothing is written and
 * no row is returned.
 */
function commitStatement(name: string, rows: Part) {
  const parts = partsWith(rows);
  const expressions = parts.map((part) => `${part.name} as (${part.sql}\n)`).join(', ');
  const commit = statement<object>(`with ${expressions}\nselect first_ordinal from head`, name);
  return (request: CommitRequest) =>
    commit(Object.assign(commonValues(request), ...parts.map((part) => part.values?.(request))));
}

const commitSmall = commitStatement('commit-small', insertedRows);
const commitCopied = commitStatement('commit-docket', copiedRows);

/** Commits a docket of few transactions in one statement; false when the head has moved. */
export async function insertDocket(client: PoolClient, request: CommitRequest): Promise<boolean> {
  const result = await client.query(commitSmall(request));
  return result.rowCount !== 0;
}

const copyTransactions = `copy transactions (register_no, docket_number, position, tx_id, type, sender_address,
  blueprint_id, action_id, previous_tx_id, created_micros, leaf, payload_hash_form, record, payload)
  from stdin (format binary)`;

/**
 * Commits a docket with COPY and one statement; false when the head has moved. The caller's transaction must then be
 * rolled back, because the rows were copied already.
 */
export async function copyDocket(client: PoolClient, request: CommitRequest): Promise<boolean> {
  const stream = client.query(copyFrom(copyTransactions));
  stream.end(copyBuffer(request.commit));
  await finished(stream);
  const result = await client.query(commitCopied(request));
  return result.rowCount !== 0;
}

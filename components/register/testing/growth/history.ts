import { type RawBuilder, sql } from 'kysely';
import { sha256, sha256Hex } from '#core/crypto/hash.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { concatBytes, utf8 } from '#core/encoding/text.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { logLeaf } from '#core/ledger/log.ts';
import type { CompleteNode } from '#core/ledger/merkle.ts';
import { buildRecord, recordBytes } from '#core/ledger/record.ts';
import type { Transactor } from '#kit/db/db.ts';
import { defaultSegmentTransactions, type RegisterSchema } from '../../database/schema.ts';
import { ENTRY_BYTES, HEADER_BYTES } from '../../ledger/values/format.ts';
import type { ChainState } from '../../ledger/writing/verify.ts';
import { type TestKey, testKey } from '../keys.ts';

type Tx = Transactor<RegisterSchema>;

/** Transactions per docket of a generated history. */
export const transactionsPerDocket = 1_000;

/** Senders and recipients of the transactions of a history. */
export const senders: readonly TestKey[] = Array.from({ length: 50 }, (_, n) => testKey(150 + n));

/** Blueprints of a history, in rotation. */
export const blueprintIds: readonly string[] = ['grow-0', 'grow-1', 'grow-2', 'grow-3', 'grow-4'];

/** Id of the n-th transaction of a history. An odd one follows the previous one and has no successor. */
export function idInHistory(n: number): string {
  return sha256Hex(`history ${n}`);
}

const idSql = (n: string) => `sha256(convert_to('history ' || ${n}, 'UTF8'))`;

const [own, previous, sender, blueprint] = ['a1'.repeat(32), 'b2'.repeat(32), '{sender}', '{blueprint}'];
const [firstKey = testKey(150)] = senders;
const payload = utf8('{"note":"history"}');

/** A record as lists read it, with marks where rows differ. Its signature is not valid. */
function recordWithMarks(registerId: string, previousTransactionId: string | undefined): string {
  const record = buildRecord({
    envelope: {
      registerId,
      blueprintId: blueprint,
      actionId: '0',
      type: 'Action',
      payloadHash: sha256Hex(payload),
      createdAt: formatLedgerTimestamp(1_767_225_600_000_000n),
      ...(previousTransactionId !== undefined && { previousTransactionId }),
    },
    txId: own,
    payloadSize: payload.length,
    senderAddress: sender,
    signatures: [
      {
        publicKey: firstKey.publicKey,
        signatureValue: encodeBase64(new Uint8Array(64)),
        algorithm: 'ED25519',
      },
    ],
    bound: true,
  });
  return Buffer.from(recordBytes(record)).toString();
}

/** The head after which a stretch of history begins. */
interface Beginning {
  readonly state: ChainState;
  /** number of transactions of this history so far */
  readonly made: number;
}

interface MadeDocket {
  readonly number: number;
  readonly hash: string;
  readonly previous: string;
  readonly log_root: string;
}

interface MadeLog {
  readonly dockets: readonly MadeDocket[];
  readonly nodes: readonly CompleteNode[];
  readonly frontier: Uint8Array;
  readonly timestamp: string;
}

/** Headers without content, with the log that they form: later dockets are judged against it. */
function makeLog({ state }: Beginning, count: number, validatorSetHash: string): MadeLog {
  const { registerId, head, height } = state;
  if (head === undefined) throw new Error('a history begins behind the genesis');
  const log = state.frontier.clone();
  const dockets: MadeDocket[] = [];
  const nodes: CompleteNode[] = [];
  for (let number = height; number < height + count; number += 1) {
    const hash = sha256Hex(`docket ${registerId} ${number}`);
    const { timestamp } = head;
    nodes.push(
      ...log.append(
        logLeaf({ registerId, docketNumber: number, hash, merkleRoot: hash, timestamp, validatorSetHash }),
      ),
    );
    const logRoot = Buffer.from(log.root()).toString('hex');
    dockets.push({ number, hash, previous: dockets.at(-1)?.hash ?? head.hash, log_root: logRoot });
  }
  return { dockets, nodes, frontier: concatBytes(log.serialise()), timestamp: head.timestamp };
}

async function insertDockets(tx: Tx, registerNo: number, log: MadeLog): Promise<void> {
  await sql`insert into dockets (register_no, docket_number, hash, previous_hash, merkle_root, log_root, validator_set_hash,
      timestamp, validator_address, is_genesis, genesis_config, size_bytes, transaction_count, first_ordinal, certificate,
      stored_at)
    select ${registerNo}, d.number, d.hash, d.previous, d.hash, d.log_root, g.validator_set_hash, ${log.timestamp},
      g.validator_address, false, null, 1, ${transactionsPerDocket},
      h.transaction_count + row_number() over (order by d.number) * ${transactionsPerDocket} - ${transactionsPerDocket}, g.certificate, g.stored_at
    from jsonb_to_recordset(${JSON.stringify(log.dockets)}::jsonb)
        as d(number bigint, hash text, previous text, log_root text),
      dockets g, register_heads h
    where g.register_no = ${registerNo} and g.docket_number = 0 and h.register_no = ${registerNo}`.execute(
    tx,
  );
  await sql`insert into log_nodes (register_no, level, position, hash)
    select ${registerNo}, n.* from unnest(${log.nodes.map((node) => node.level)}::smallint[],
      ${log.nodes.map((node) => node.index)}::bigint[],
      ${log.nodes.map((node) => Buffer.from(node.hash))}::bytea[]) as n`.execute(tx);
}

/** One row of a stretch per transaction, with the columns of all tables that have a row per transaction. */
function rowsOf({ state, made }: Beginning, count: number) {
  const { registerNo, registerId, height } = state;
  const addresses = senders.map(({ walletAddress }) => walletAddress);
  const first = recordWithMarks(registerId, undefined);
  const following = recordWithMarks(registerId, previous);
  return sql`(
    select ${registerNo}::integer as register_no, ${height}::bigint + (n - ${made}) / ${transactionsPerDocket} as docket_number,
      ((n - ${made}) % ${transactionsPerDocket})::integer as position, n, ${sql.raw(idSql('n'))} as tx_id,
      (${addresses}::text[])[1 + n % ${addresses.length}] as sender_address,
      (${addresses}::text[])[1 + (n + n % 8) % ${addresses.length}] as recipient,
      (${[...blueprintIds]}::text[])[1 + n % ${blueprintIds.length}] as blueprint_id,
      case when n % 2 = 1 then ${sql.raw(idSql('(n - 1)'))} end as previous_tx_id,
      case when n % 2 = 1 then ${following} else ${first} end as record
    from generate_series(${made}::bigint, ${made + count - 1}::bigint) as n
  )`;
}

/** The values of dockets, in the format of `ledger/values`. */
async function insertValues(tx: Tx, rows: RawBuilder<unknown>): Promise<void> {
  const leaf = Buffer.from(sha256(utf8('leaf')));
  const payloadBytes = Buffer.from(payload);
  const first = HEADER_BYTES + ENTRY_BYTES * transactionsPerDocket;
  const body = sql`convert_to(replace(replace(replace(replace(record, ${own}, encode(tx_id, 'hex')),
    ${sender}, sender_address), ${blueprint}, blueprint_id), ${previous}, coalesce(encode(previous_tx_id, 'hex'), '')), 'UTF8')`;
  await sql`insert into docket_values (register_no, docket_number, value)
    select register_no, docket_number, decode(${'01'}, 'hex') || int4send(${transactionsPerDocket}::integer)
      || string_agg(int4send(${first}::integer + start) || int4send(octet_length(body))
        || int4send(${payloadBytes.length}::integer) || decode(${'00'}, 'hex') || tx_id || ${leaf}::bytea, ''::bytea order by position)
      || string_agg(body || ${payloadBytes}::bytea, ''::bytea order by position)
    from (
      select *, (sum(octet_length(body) + ${payloadBytes.length}::integer) over (partition by docket_number order by position)
        - octet_length(body) - ${payloadBytes.length}::integer)::integer as start
      from (select r.*, ${body} as body from ${rows} r) bodies
    ) placed group by register_no, docket_number`.execute(tx);
}

async function insertTransactions(tx: Tx, beginning: Beginning, count: number): Promise<void> {
  const rows = rowsOf(beginning, count);
  const { segment } = beginning.state;
  await sql`insert into transaction_rows (register_no, docket_number, position, tx_id, type, sender_address, blueprint_id,
      action_id, previous_tx_id, created_micros)
    select register_no, docket_number, position, tx_id, 'Action', sender_address, blueprint_id, '0', previous_tx_id,
      1767225600000000 + n from ${rows} r`.execute(tx);
  await insertValues(tx, rows);
  // sorted by key: cheaper than inserting the rows in random order
  await sql`insert into transaction_ids (register_no, segment, tx_id, docket_number, position, type, replay_key)
    select register_no, ${segment}::integer, tx_id, docket_number, position, 'Action', case when n % 2 = 0 then substring(tx_id from 5 for 16) end
    from ${rows} r order by tx_id`.execute(tx);
  await sql`insert into transaction_successors (register_no, segment, previous_tx_id, tx_id)
    select register_no, ${segment}::integer, previous_tx_id, tx_id from ${rows} r where previous_tx_id is not null
    order by previous_tx_id`.execute(tx);
  await sql`insert into transaction_recipients (register_no, address, docket_number, position)
    select register_no, recipient, docket_number, position from ${rows} r where n % 4 = 0
    order by recipient, docket_number, position`.execute(tx);
}

/** Totals of a stretch, added as a docket adds its own. */
async function addCounters(tx: Tx, beginning: Beginning, count: number): Promise<void> {
  const rows = rowsOf(beginning, count);
  const counters = [
    ['sender_counters', 'sender_address', 'sender_address', 'true'],
    ['blueprint_counters', 'blueprint_id', 'blueprint_id', 'true'],
    ['recipient_counters', 'address', 'recipient', 'n % 4 = 0'],
  ] as const;
  for (const [table, key, column, where] of counters) {
    const counter = sql.table(table);
    await sql`insert into ${counter} (register_no, ${sql.ref(key)}, transaction_count)
      select register_no, ${sql.ref(column)}, count(*) from ${rows} r where ${sql.raw(where)} group by 1, 2
      on conflict (register_no, ${sql.ref(key)})
        do update set transaction_count = ${counter}.transaction_count + excluded.transaction_count`.execute(
      tx,
    );
  }
  await sql`update recipient_counters c set sent_count = c.sent_count + r.count from (
      select recipient, count(*) from ${rows} r where n % 4 = 0 and recipient = sender_address group by 1
    ) r where c.register_no = ${beginning.state.registerNo} and c.address = r.recipient`.execute(tx);
}

async function makePartitions(tx: Tx, from: number, until: number): Promise<void> {
  for (let index = Math.floor(from / 10_000); index <= Math.floor(until / 10_000); index += 1) {
    await sql`create table if not exists ${sql.table(`transactions_p${index}`)} partition of transaction_rows
      for values from (${sql.lit(index * 10_000)}) to (${sql.lit((index + 1) * 10_000)})`.execute(tx);
    await sql`create table if not exists ${sql.table(`docket_values_p${index}`)} partition of docket_values
      for values from (${sql.lit(index * 10_000)}) to (${sql.lit((index + 1) * 10_000)})`.execute(tx);
  }
}

/**
 * Appends generated dockets to a register, in all tables and counters that a docket commit and its projection write. PostgreSQL generates
 * the rows: records have the shape of sealed ones, without valid signatures. The head and the register's log are
 * consistent, so the next real docket can follow.
 */
export async function addHistory(tx: Tx, beginning: Beginning, dockets: number): Promise<void> {
  const { registerNo, height } = beginning.state;
  const count = dockets * transactionsPerDocket;
  const genesis = await tx
    .selectFrom('dockets')
    .select('validator_set_hash')
    .where('register_no', '=', registerNo)
    .where('docket_number', '=', 0)
    .executeTakeFirstOrThrow();
  const log = makeLog(beginning, dockets, genesis.validator_set_hash);
  await makePartitions(tx, height, height + dockets);
  await insertTransactions(tx, beginning, count);
  await addCounters(tx, beginning, count);
  await insertDockets(tx, registerNo, log);
  await tx
    .updateTable('register_heads')
    .set((to) => ({
      height: height + dockets,
      head_hash: log.dockets.at(-1)?.hash ?? '',
      log_frontier: Buffer.from(log.frontier),
      transaction_count: to('transaction_count', '+', count),
      size_bytes: to('size_bytes', '+', dockets),
      segment: sql`segment + (segment_count + ${count} >= ${defaultSegmentTransactions})::integer`,
      segment_count: sql`case when segment_count + ${count} >= ${defaultSegmentTransactions} then 0 else segment_count + ${count} end`,
    }))
    .where('register_no', '=', registerNo)
    .execute();
  await tx
    .insertInto('register_projections')
    .values({ register_no: registerNo, height: height + dockets })
    .onConflict((conflict) => conflict.column('register_no').doUpdateSet({ height: height + dockets }))
    .execute();
}

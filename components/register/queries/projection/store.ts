import type { PoolClient } from 'pg';
import { AppError } from '#core/errors/errors.ts';
import { parseRecord } from '#core/ledger/record.ts';
import type { Database } from '#kit/db/db.ts';
import { statement } from '#kit/db/statement.ts';
import { copyRows, withClient } from '../../database/client/store.ts';
import { createCopyWriter } from '../../database/copy-rows.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { parseValue } from '../../ledger/values/format.ts';
import { rebuildStep } from './rebuild/store.ts';
import {
  blueprintTotals,
  type IndexedDocket,
  type IndexRow,
  indexRowOf,
  recipientTotals,
  senderTotals,
  sentToSelf,
} from './rows.ts';

/** A row with its location. */
interface LocatedRow extends IndexRow {
  readonly docketNumber: number;
  readonly position: number;
}

/** Consecutive dockets whose index rows are written together. */
interface Batch {
  readonly registerNo: number;
  readonly dockets: readonly IndexedDocket[];
}

/** Up to this many rows are passed as arrays in one statement; more are copied. */
const fewRows = 8;

const bytesOf = (id: string | undefined) => (id === undefined ? null : Buffer.from(id, 'hex'));

const insertedRows = `, index_rows as (
  insert into transaction_rows (register_no, docket_number, position, tx_id, type, sender_address, blueprint_id,
    action_id, previous_tx_id, created_micros, instance_id)
  select :registerNo, t.* from cursor, unnest(:docketNumbers::bigint[], :positions::integer[], :txIds::bytea[],
    :types::text[], :senderAddresses::text[], :blueprintIds::text[], :actionIds::text[], :previousTxIds::bytea[],
    :createdMicros::bigint[], :instanceIds::text[]) as t
), recipient_rows as (
  insert into transaction_recipients (register_no, address, docket_number, position)
  select :registerNo, t.* from cursor, unnest(:addresses::text[], :addressDockets::bigint[], :addressPositions::integer[]) as t
)`;

/**
 * Advances the cursor and adds the totals. The update of the cursor is the gate: it has no row when the rows of a docket
 * are written already, when a docket before it is missing, when the docket is not the stored one, or while another
 * process has locked the cursor. A commit that is lost in a crash is repeated, so it need not wait for the disk.
 */
const projectStatement = (rows: string) => `with free as (
  select register_no from register_projections
  where register_no = :registerNo and height = :height::bigint and not rebuild for update skip locked
), cursor as (
  update register_projections p set height = :until::bigint from free
  where p.register_no = free.register_no and exists (select 1 from dockets
    where register_no = :registerNo and docket_number = :until::bigint - 1 and hash = :hash)
  returning p.register_no
)${rows}, sender_totals as (
  insert into sender_counters (register_no, sender_address, transaction_count)
  select :registerNo, t.* from cursor, unnest(:senders::text[], :senderCounts::bigint[]) as t
  on conflict (register_no, sender_address)
    do update set transaction_count = sender_counters.transaction_count + excluded.transaction_count
), blueprint_totals as (
  insert into blueprint_counters (register_no, blueprint_id, transaction_count)
  select :registerNo, t.* from cursor, unnest(:blueprints::text[], :blueprintCounts::bigint[]) as t
  on conflict (register_no, blueprint_id)
    do update set transaction_count = blueprint_counters.transaction_count + excluded.transaction_count
), recipient_totals as (
  insert into recipient_counters (register_no, address, transaction_count, sent_count)
  select :registerNo, t.* from cursor, unnest(:recipients::text[], :recipientCounts::bigint[], :sentCounts::bigint[]) as t
  on conflict (register_no, address)
    do update set transaction_count = recipient_counters.transaction_count + excluded.transaction_count,
      sent_count = recipient_counters.sent_count + excluded.sent_count
)
select set_config('synchronous_commit', 'off', true) from cursor`;

const projectFew = statement<object>(projectStatement(insertedRows), 'project-few');
const projectCopied = statement<object>(projectStatement(''), 'project-copied');

function locate(dockets: readonly IndexedDocket[]): LocatedRow[] {
  return dockets.flatMap(({ docketNumber, rows }) =>
    rows.map((row, position) => ({ ...row, docketNumber, position })),
  );
}

const located = (rows: readonly LocatedRow[]) =>
  rows.flatMap(({ recipients, docketNumber, position }) =>
    recipients.map((address) => ({ address, docketNumber, position })),
  );

function cursorValues({ registerNo, dockets }: Batch) {
  const last = dockets.at(-1);
  const until = (last?.docketNumber ?? -1) + 1;
  return { registerNo, height: until - dockets.length, until, hash: last?.hash ?? '' };
}

function totalValues(rows: readonly IndexRow[]) {
  const senders = senderTotals(rows);
  const blueprints = blueprintTotals(rows);
  const recipients = recipientTotals(rows);
  return {
    senders: senders.keys,
    senderCounts: senders.counts,
    blueprints: blueprints.keys,
    blueprintCounts: blueprints.counts,
    recipients: recipients.keys,
    recipientCounts: recipients.counts,
    sentCounts: sentToSelf(rows, recipients),
  };
}

function rowValues(rows: readonly LocatedRow[]) {
  const received = located(rows);
  return {
    docketNumbers: rows.map((row) => row.docketNumber),
    positions: rows.map((row) => row.position),
    txIds: rows.map((row) => bytesOf(row.txId)),
    types: rows.map((row) => row.type),
    senderAddresses: rows.map((row) => row.senderAddress),
    blueprintIds: rows.map((row) => row.blueprintId ?? null),
    actionIds: rows.map((row) => row.actionId ?? null),
    previousTxIds: rows.map((row) => bytesOf(row.previousTxId)),
    createdMicros: rows.map((row) => row.createdMicros),
    instanceIds: rows.map((row) => row.instanceId ?? null),
    addresses: received.map((one) => one.address),
    addressDockets: received.map((one) => one.docketNumber),
    addressPositions: received.map((one) => one.position),
  };
}

const copyIndexRows = `copy transaction_rows (register_no, docket_number, position, tx_id, type, sender_address,
  blueprint_id, action_id, previous_tx_id, created_micros, instance_id) from stdin (format binary)`;
const copyRecipients = `copy transaction_recipients (register_no, address, docket_number, position)
  from stdin (format binary)`;

function indexBuffer({ registerNo, dockets }: Batch): Buffer {
  const rows = createCopyWriter();
  for (const { docketNumber, rows: all } of dockets) {
    for (const [position, row] of all.entries()) {
      rows.row(11);
      rows.int4(registerNo);
      rows.int8(docketNumber);
      rows.int4(position);
      rows.hex(row.txId);
      rows.text(row.type);
      rows.text(row.senderAddress);
      rows.text(row.blueprintId);
      rows.text(row.actionId);
      rows.hex(row.previousTxId);
      rows.int8(row.createdMicros);
      rows.text(row.instanceId);
    }
  }
  return rows.finish();
}

/** Undefined without recipients. */
function recipientsBuffer({ registerNo, dockets }: Batch): Buffer | undefined {
  const rows = createCopyWriter();
  let isEmpty = true;
  for (const { docketNumber, rows: all } of dockets) {
    for (const [position, { recipients }] of all.entries()) {
      for (const address of recipients) {
        isEmpty = false;
        rows.row(4);
        rows.int4(registerNo);
        rows.text(address);
        rows.int8(docketNumber);
        rows.int4(position);
      }
    }
  }
  return isEmpty ? undefined : rows.finish();
}

/** Writes a batch in the open transaction; false when the gate refuses it. */
async function writeInside(client: PoolClient, batch: Batch): Promise<boolean> {
  const rows = batch.dockets.flatMap((docket) => docket.rows);
  const result = await client.query(projectCopied({ ...cursorValues(batch), ...totalValues(rows) }));
  if (result.rowCount === 0) return false;
  await copyRows(client, copyIndexRows, indexBuffer(batch));
  const recipients = recipientsBuffer(batch);
  if (recipients !== undefined) await copyRows(client, copyRecipients, recipients);
  return true;
}

/**
 * Writes the index rows of consecutive dockets that this process has just stored, and advances the cursor, in one
 * transaction; false when the cursor is elsewhere, or when another docket is stored.
 */
export async function writeBatch(
  database: Pick<Database<RegisterSchema>, 'pool'>,
  batch: Batch,
): Promise<boolean> {
  const count = batch.dockets.reduce((sum, { rows }) => sum + rows.length, 0);
  return withClient(database, async (client) => {
    if (count <= fewRows) {
      const rows = locate(batch.dockets);
      const values = { ...cursorValues(batch), ...totalValues(rows), ...rowValues(rows) };
      return (await client.query(projectFew(values))).rowCount !== 0;
    }
    await client.query('begin');
    const isWritten = await writeInside(client, batch);
    await client.query(isWritten ? 'commit' : 'rollback');
    return isWritten;
  });
}

/** Bounds of a batch that is read from the database. Its records are parsed in one turn of the event loop. */
const mostDockets = 500;
const mostRows = 5_000;
const mostBytes = 4 * 1024 * 1024;

interface DocketToRead {
  readonly docketNumber: number;
  readonly hash: string;
  readonly previousHash: string;
  readonly transactionCount: number;
  /** null without a value */
  readonly bytes: number | null;
}

/** The longest prefix within the bounds; never empty. */
function boundedPrefix(dockets: readonly DocketToRead[]): readonly DocketToRead[] {
  let [rows, bytes] = [0, 0];
  const end = dockets.findIndex((docket, index) => {
    rows += docket.transactionCount;
    bytes += docket.bytes ?? 0;
    return index > 0 && (rows > mostRows || bytes > mostBytes);
  });
  return end === -1 ? dockets : dockets.slice(0, end);
}

const findDockets = statement<{ registerNo: number; height: number; until: number }>(`
  select d.docket_number as "docketNumber", d.hash, d.previous_hash as "previousHash",
    d.transaction_count as "transactionCount", octet_length(v.value) as bytes
  from dockets d left join docket_values v on v.register_no = d.register_no and v.docket_number = d.docket_number
    and v.docket_number >= :height::bigint and v.docket_number < :until::bigint
  where d.register_no = :registerNo and d.docket_number >= :height::bigint and d.docket_number < :until::bigint
  order by d.docket_number`);

const findValues = statement<{ registerNo: number; height: number; until: number }>(`
  select docket_number as "docketNumber", value from docket_values
  where register_no = :registerNo and docket_number >= :height::bigint and docket_number < :until::bigint`);

interface ReadValue {
  readonly docketNumber: number;
  readonly value: Buffer;
}

/** The next dockets after the cursor with their index rows. One without a value has rows already. */
async function readDockets(client: PoolClient, registerNo: number, height: number): Promise<IndexedDocket[]> {
  const range = { registerNo, height, until: height + mostDockets };
  const found = await client.query<DocketToRead>(findDockets(range));
  const chosen = boundedPrefix(found.rows);
  const until = (chosen.at(-1)?.docketNumber ?? height - 1) + 1;
  if (until - height !== chosen.length)
    throw new AppError('internal', 'INTERNAL_ERROR', `A docket of register ${registerNo} is missing.`);
  const values = await client.query<ReadValue>(findValues({ registerNo, height, until }));
  const byNumber = new Map(values.rows.map((row) => [row.docketNumber, row.value]));
  return chosen.map(({ docketNumber, hash, previousHash }) => {
    const value = byNumber.get(docketNumber);
    const transactions = value === undefined ? [] : parseValue(value);
    return {
      docketNumber,
      hash,
      previousHash,
      rows: transactions.map((one) => indexRowOf(parseRecord(one.record))),
    };
  });
}

/** A register that an earlier version created has no cursor before its first step. */
const createCursor = statement<{ registerNo: number }>(
  'insert into register_projections (register_no) values (:registerNo) on conflict do nothing',
);
const lockCursor = statement<{ registerNo: number }>(`
  select p.height, p.rebuild, h.height as head from register_projections p
  join register_heads h on h.register_no = p.register_no join registers r on r.register_no = p.register_no
  where p.register_no = :registerNo and r.status <> 'Deleted' for update of p skip locked`);
const findPresent = statement<{ registerNo: number }>(
  "select 1 from registers where register_no = :registerNo and status <> 'Deleted'",
);

interface Cursor {
  readonly height: number;
  readonly rebuild: boolean;
  /** height of the register */
  readonly head: number;
}

interface StepProgress {
  /** the cursor after the step */
  readonly height: number;
  /** height of the register */
  readonly head: number;
  /** whether index rows were written */
  readonly isWritten: boolean;
  /** whether the register needs another step */
  readonly isMore: boolean;
}

/** The outcome of a step. `busy`: another process is writing the index rows of the register. `gone`: it is deleted. */
type StepOutcome = StepProgress | 'busy' | 'gone';

/**
 * Reads the next dockets from the database, writes their index rows and advances the cursor, in one transaction. Its
 * size is bounded. The cursor is locked, and a locked one is skipped.
 */
export function projectStored(
  database: Pick<Database<RegisterSchema>, 'pool'>,
  registerNo: number,
): Promise<StepOutcome> {
  return withClient(database, async (client) => {
    await client.query('begin');
    await client.query(createCursor({ registerNo }));
    const { rows } = await client.query<Cursor>(lockCursor({ registerNo }));
    const [cursor] = rows;
    const outcome =
      cursor === undefined
        ? await reasonWithoutCursor(client, registerNo)
        : await advance(client, registerNo, cursor);
    await client.query('commit');
    return outcome;
  });
}

async function reasonWithoutCursor(client: PoolClient, registerNo: number): Promise<'busy' | 'gone'> {
  const { rowCount } = await client.query(findPresent({ registerNo }));
  return rowCount === 0 ? 'gone' : 'busy';
}

async function advance(client: PoolClient, registerNo: number, cursor: Cursor): Promise<StepOutcome> {
  const { height, head } = cursor;
  if (cursor.rebuild) {
    const step = await rebuildStep(client, registerNo, height);
    return { head, isWritten: false, ...step, isMore: step.isMore || step.height < head };
  }
  if (height >= head) return { height, head, isWritten: false, isMore: false };
  const dockets = await readDockets(client, registerNo, height);
  const isWritten = await writeInside(client, { registerNo, dockets });
  if (!isWritten) throw new AppError('internal', 'INTERNAL_ERROR', 'A locked cursor moved.');
  const until = height + dockets.length;
  return { height: until, head, isWritten, isMore: until < head };
}

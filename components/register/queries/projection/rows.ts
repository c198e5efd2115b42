import { findTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import type { SealedRecord } from '#core/ledger/record.ts';
import { longestIndexedBytes } from '../../database/schema.ts';

/** The index row of a transaction: what queries filter and sort by. */
export interface IndexRow {
  readonly txId: string;
  readonly type: string;
  readonly senderAddress: string;
  /** each once, without those that the index cannot hold */
  readonly recipients: readonly string[];
  readonly blueprintId: string | undefined;
  readonly actionId: string | undefined;
  readonly instanceId: string | undefined;
  readonly previousTxId: string | undefined;
  readonly createdMicros: number;
}

/** The index rows of one docket. */
export interface IndexedDocket {
  readonly docketNumber: number;
  readonly hash: string;
  readonly previousHash: string;
  /** in docket order; none for a docket whose rows its own commit wrote */
  readonly rows: readonly IndexRow[];
}

/** Columns are text, which cannot hold NUL; the signed record keeps the original. */
function indexText(text: string | undefined): string | undefined {
  return text?.includes('\u0000') ? undefined : text;
}

function indexRecipients(recipients: readonly string[]): string[] {
  return [...new Set(recipients)].filter(
    (one) => Buffer.byteLength(one) <= longestIndexedBytes && !one.includes('\u0000'),
  );
}

/** Instances are matched as rows without a value match them: by names that JSON writes without escapes. */
function instanceOf({ metadata }: SealedRecord): string | undefined {
  const name = metadata['instanceId'];
  return name === undefined || JSON.stringify(name) !== `"${name}"` ? undefined : name;
}

/** The index row of a sealed record. */
export function indexRowOf(record: SealedRecord): IndexRow {
  return {
    txId: record.txId,
    type: record.type,
    senderAddress: record.senderAddress,
    recipients: indexRecipients(record.recipients),
    blueprintId: indexText(record.blueprintId),
    actionId: indexText(record.actionId),
    instanceId: instanceOf(record),
    previousTxId: record.previousTransactionId,
    createdMicros: Number(ticksToMicros(findTimestamp(record.createdAt) ?? 0n)),
  };
}

/** Totals of rows by one text. */
interface Totals {
  readonly keys: readonly string[];
  readonly counts: readonly number[];
}

function totalsOf(keys: readonly string[]): Totals {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return { keys: [...counts.keys()], counts: [...counts.values()] };
}

export const senderTotals = (rows: readonly IndexRow[]): Totals =>
  totalsOf(rows.map((row) => row.senderAddress));

export const blueprintTotals = (rows: readonly IndexRow[]): Totals =>
  totalsOf(
    rows.flatMap(({ blueprintId }) =>
      blueprintId === undefined || Buffer.byteLength(blueprintId) > longestIndexedBytes ? [] : [blueprintId],
    ),
  );

export const recipientTotals = (rows: readonly IndexRow[]): Totals =>
  totalsOf(rows.flatMap((row) => row.recipients));

/** Of the recipients' totals, transactions that an address sent to itself. */
export function sentToSelf(rows: readonly IndexRow[], { keys }: Totals): number[] {
  const own = totalsOf(
    rows.flatMap(({ recipients, senderAddress }) =>
      recipients.includes(senderAddress) ? [senderAddress] : [],
    ),
  );
  const counts = new Map(own.keys.map((key, index) => [key, own.counts[index] ?? 0]));
  return keys.map((key) => counts.get(key) ?? 0);
}

import { AppError } from '#core/errors/errors.ts';
import { writeCheckpoint, writeDocket, writeHeader, writeTransaction } from '#core/ledger/export/lines.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { attestationsOf, listDockets, type StoredDocket } from '../../ledger/dockets/store.ts';
import type { ValueEntry } from '../../ledger/values/format.ts';
import { type EntryRun, entriesOfDockets, runBytes, transactionsOf } from '../../ledger/values/store.ts';
import { type ExportedRow, nextTransactions, pageBytes, transactionIdsOf } from './store.ts';

/** A register at a signed checkpoint. */
export interface ExportPlan {
  readonly registerNo: number;
  readonly registerId: string;
  /** Dockets that the checkpoint covers. */
  readonly size: number;
  /** The signed checkpoint with its cosignatures. */
  readonly checkpoint: string;
}

type Db = Reader<RegisterSchema>;

/** Dockets read at once, and the bound on their transactions when there are several. */
const groupDockets = 100;
const groupTransactions = 5_000;
/** Approximate size of a chunk of text. */
const chunkChars = 64 * 1024;

function rowsMissing(docketNumber: number): AppError {
  const text = 'Rows of a docket are missing; the export cannot continue.';
  return new AppError('internal', 'INTERNAL_ERROR', text, { details: { docketNumber } });
}

/** The longest prefix of a list whose transactions are within the bound; never empty. */
function boundedGroup(dockets: readonly StoredDocket[]): readonly StoredDocket[] {
  let transactions = 0;
  const end = dockets.findIndex((docket, index) => {
    transactions += docket.transaction_count;
    return index > 0 && transactions > groupTransactions;
  });
  return end === -1 ? dockets : dockets.slice(0, end);
}

/** Rows of consecutive dockets without a value in order, read page by page. */
async function* rowsOf(db: Db, registerNo: number, from: number, to: number): AsyncGenerator<ExportedRow> {
  let after = { docketNumber: from, position: -1 };
  for (;;) {
    const page = await nextTransactions(db, registerNo, after, to);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

/** Entries of dockets with a value, by docket. */
type Entries = ReadonlyMap<number, readonly ValueEntry[]>;

/** Runs of entries, each within the bound of a page unless it is one transaction. */
function* runsOf(docketNumber: number, entries: readonly ValueEntry[]): Generator<EntryRun> {
  let run: ValueEntry[] = [];
  for (const entry of entries) {
    if (run.length > 0 && runBytes({ docketNumber, entries: [...run.slice(0, 1), entry] }) > pageBytes) {
      yield { docketNumber, entries: run };
      run = [];
    }
    run.push(entry);
  }
  if (run.length > 0) yield { docketNumber, entries: run };
}

/** Pages of runs: several small dockets are read together. */
function* pagesOf(dockets: readonly StoredDocket[], entries: Entries): Generator<readonly EntryRun[]> {
  let page: EntryRun[] = [];
  let bytes = 0;
  for (const { docket_number: docketNumber } of dockets) {
    for (const run of runsOf(docketNumber, entries.get(docketNumber) ?? [])) {
      if (page.length > 0 && bytes + runBytes(run) > pageBytes) {
        yield page;
        [page, bytes] = [[], 0];
      }
      page.push(run);
      bytes += runBytes(run);
    }
  }
  if (page.length > 0) yield page;
}

/** Transactions of dockets with a value in order, read page by page. */
async function* transactionsFromValues(
  db: Db,
  registerNo: number,
  dockets: readonly StoredDocket[],
  entries: Entries,
): AsyncGenerator<ExportedRow> {
  let position = 0;
  let current: number | undefined;
  for (const page of pagesOf(dockets, entries)) {
    const found = await transactionsOf(db, registerNo, page);
    for (const [index, { docketNumber }] of page.entries()) {
      if (docketNumber !== current) [current, position] = [docketNumber, 0];
      for (const { record, payload } of found[index] ?? []) {
        yield { docketNumber, position, record, payload };
        position += 1;
      }
    }
  }
}

/** Consecutive dockets that all have a value, or all have none. */
function* sameForm(dockets: readonly StoredDocket[], entries: Entries): Generator<readonly StoredDocket[]> {
  let run: StoredDocket[] = [];
  for (const docket of dockets) {
    const [first] = run;
    if (first !== undefined && entries.has(first.docket_number) !== entries.has(docket.docket_number)) {
      yield run;
      run = [];
    }
    run.push(docket);
  }
  if (run.length > 0) yield run;
}

/** Transactions of a group of dockets in order. */
async function* transactionsIn(
  db: Db,
  registerNo: number,
  group: readonly StoredDocket[],
  entries: Entries,
): AsyncGenerator<ExportedRow> {
  for (const run of sameForm(group, entries)) {
    const [first, last] = [run[0]?.docket_number ?? 0, run.at(-1)?.docket_number ?? 0];
    if (entries.has(first)) yield* transactionsFromValues(db, registerNo, run, entries);
    else yield* rowsOf(db, registerNo, first, last);
  }
}

async function docketLines(db: Db, plan: ExportPlan, group: readonly StoredDocket[], entries: Entries) {
  const { registerNo, registerId } = plan;
  const numbers = group.map((docket) => docket.docket_number);
  const range = { from: numbers[0] ?? 0, to: numbers.at(-1) ?? 0 };
  const hasRows = numbers.some((number) => !entries.has(number));
  const [votes, ids] = await Promise.all([
    attestationsOf(db, registerNo, numbers),
    hasRows ? transactionIdsOf(db, registerNo, range) : new Map<number, readonly string[]>(),
  ]);
  const byDocket = Map.groupBy(votes, (vote) => vote.docketNumber);
  return group.map((docket) => {
    const stored = entries.get(docket.docket_number)?.map(({ txId }) => txId);
    const transactionIds = stored ?? ids.get(docket.docket_number) ?? [];
    if (transactionIds.length !== docket.transaction_count) throw rowsMissing(docket.docket_number);
    const genesisConfig = docket.genesis_config ?? undefined;
    return writeDocket({
      header: {
        registerId,
        docketNumber: docket.docket_number,
        previousHash: docket.previous_hash,
        timestamp: docket.timestamp,
        validatorAddress: docket.validator_address,
        transactionIds,
        hash: docket.hash,
        merkleRoot: docket.merkle_root,
        logRoot: docket.log_root,
        validatorSetHash: docket.validator_set_hash,
        isGenesis: docket.is_genesis,
        sizeBytes: docket.size_bytes,
        ...(genesisConfig !== undefined && { genesisConfig }),
      },
      certificate: JSON.parse(docket.certificate),
      attestations: (byDocket.get(docket.docket_number) ?? []).map((vote) => vote.attestation),
    });
  });
}

/** Lines of a group of dockets, each docket before its transactions. */
async function* groupLines(db: Db, plan: ExportPlan, group: readonly StoredDocket[]): AsyncGenerator<string> {
  const [first, last] = [group[0], group.at(-1)];
  if (first === undefined || last === undefined) return;
  const range = { from: first.docket_number, to: last.docket_number };
  const entries = await entriesOfDockets(db, plan.registerNo, range);
  const lines = await docketLines(db, plan, group, entries);
  const rows = transactionsIn(db, plan.registerNo, group, entries);
  for (const [index, docket] of group.entries()) {
    yield lines[index] ?? '';
    for (let position = 0; position < docket.transaction_count; position += 1) {
      const { value: row } = await rows.next();
      const fits = row?.docketNumber === docket.docket_number && row.position === position;
      if (row === undefined || !fits) throw rowsMissing(docket.docket_number);
      yield writeTransaction(row.record, row.payload);
    }
  }
}

async function* exportLines(db: Db, plan: ExportPlan): AsyncGenerator<string> {
  const { registerNo, registerId, size } = plan;
  yield writeHeader({ registerId, dockets: size });
  let transactions = 0;
  for (let from = 0; from < size; ) {
    const range = { from, to: size - 1, order: 'asc', limit: groupDockets } as const;
    const group = boundedGroup(await listDockets(db, registerNo, range));
    if (group[0]?.docket_number !== from) throw rowsMissing(from);
    yield* groupLines(db, plan, group);
    from += group.length;
    transactions += group.reduce((sum, docket) => sum + docket.transaction_count, 0);
  }
  yield writeCheckpoint(plan.checkpoint, transactions);
}

/**
 * The export of a register as chunks of text. It reads bounded pages on demand and holds no connection in between:
 * sealed history does not change, so no snapshot is needed.
 */
export async function* exportText(db: Db, plan: ExportPlan): AsyncGenerator<string> {
  let chunk = '';
  for await (const line of exportLines(db, plan)) {
    chunk += line;
    if (chunk.length < chunkChars) continue;
    yield chunk;
    chunk = '';
  }
  yield chunk;
}

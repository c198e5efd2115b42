import { AppError } from '#core/errors/errors.ts';
import { writeCheckpoint, writeDocket, writeHeader, writeTransaction } from '#core/ledger/export/lines.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { attestationsOf, listDockets, type StoredDocket } from '../../ledger/dockets/store.ts';
import { type ExportedRow, nextTransactions, transactionIdsOf } from './store.ts';

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

/** Rows of consecutive dockets in order, read page by page. */
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

async function docketLines(db: Db, plan: ExportPlan, group: readonly StoredDocket[]) {
  const { registerNo, registerId } = plan;
  const numbers = group.map((docket) => docket.docket_number);
  const range = { from: numbers[0] ?? 0, to: numbers.at(-1) ?? 0 };
  const [votes, ids] = await Promise.all([
    attestationsOf(db, registerNo, numbers),
    transactionIdsOf(db, registerNo, range),
  ]);
  const byDocket = Map.groupBy(votes, (vote) => vote.docketNumber);
  return group.map((docket) => {
    const transactionIds = ids.get(docket.docket_number) ?? [];
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
  const lines = await docketLines(db, plan, group);
  const [first, last] = [group[0], group.at(-1)];
  if (first === undefined || last === undefined) return;
  const rows = rowsOf(db, plan.registerNo, first.docket_number, last.docket_number);
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

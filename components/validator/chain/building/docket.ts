import { formatLedgerTimestamp, parseTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import { buildHeader, type DocketHeader } from '#core/ledger/docket.ts';
import type { Value } from '../consensus/messages.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { RegisterState } from '../state/state.ts';

/** A docket with its transactions, in order. */
export interface Docket {
  readonly header: DocketHeader;
  readonly transactions: readonly PooledTransaction[];
}

interface Proposer {
  readonly validatorAddress: string;
  readonly nowMicros: bigint;
  /** Docket 0 only. */
  readonly genesisConfig?: string | undefined;
}

/** Builds the docket after a state. Its timestamp is max(head + 1 us, now); docket 0 takes that of its transaction. */
export function buildDocket(
  state: RegisterState,
  transactions: readonly PooledTransaction[],
  proposer: Proposer,
): Docket {
  const header = buildHeader(
    {
      registerId: state.registerId,
      docketNumber: state.height,
      previousHash: state.headHash,
      timestamp: docketTimestamp(state, transactions, proposer.nowMicros),
      validatorAddress: proposer.validatorAddress,
      transactionIds: transactions.map((transaction) => transaction.txId),
      validatorSetHash: state.membersHash,
      genesisConfig: proposer.genesisConfig,
      sizeBytes: transactions.reduce((sum, transaction) => sum + transaction.record.length, 0),
    },
    transactions.map((transaction) => transaction.leaf),
    state.log,
  );
  return { header, transactions };
}

function docketTimestamp(
  state: RegisterState,
  transactions: readonly PooledTransaction[],
  nowMicros: bigint,
): string {
  const [first] = transactions;
  if (state.height === 0 && first !== undefined) {
    return formatLedgerTimestamp(ticksToMicros(parseTimestamp(first.createdAt)));
  }
  return nextTimestamp(state, nowMicros);
}

/** The timestamp of the next docket after a state: max(head + 1 us, now). */
export function nextTimestamp({ height, headTimestamp }: RegisterState, nowMicros: bigint): string {
  if (height === 0) return formatLedgerTimestamp(nowMicros);
  const head = ticksToMicros(parseTimestamp(headTimestamp));
  return formatLedgerTimestamp(nowMicros > head ? nowMicros : head + 1n);
}

/** The value that consensus votes on. */
export function docketValue(header: DocketHeader): Value {
  const { hash, merkleRoot, logRoot, timestamp } = header;
  return { hash, merkleRoot, logRoot, timestamp };
}

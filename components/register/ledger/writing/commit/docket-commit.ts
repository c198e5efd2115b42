import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { CompleteNode } from '#core/ledger/merkle.ts';
import type { SealedPublication } from '../../../blueprints/publications/record.ts';
import { createCopyWriter } from '../../../database/copy-rows.ts';
import type { DocketRow } from '../../../database/schema.ts';
import type { Projection } from '../../../governance/rules/store.ts';
import type { ParticipantKey } from '../../../queries/participants/record.ts';
import type { IndexedDocket, IndexRow } from '../../../queries/projection/rows.ts';
import type { ValueTransaction } from '../../values/format.ts';

/** A transaction to store: its bytes, its index row and its keys. */
export interface NewTransaction extends ValueTransaction, IndexRow {
  /** whether the predecessor may have no other successor */
  readonly onlySuccessor: boolean;
  /** hex of the replay key, which no second Action may repeat; undefined for other types */
  readonly replayKey: string | undefined;
  /** whether it is a step of a workflow */
  readonly isStep: boolean;
}

export interface DocketCommit {
  readonly registerNo: number;
  readonly registerId: string;
  /** the open key segment that the docket was judged against */
  readonly segment: number;
  readonly docket: Omit<DocketRow, 'register_no' | 'first_ordinal'>;
  readonly transactions: readonly NewTransaction[];
  readonly frontier: Uint8Array;
  readonly nodes: readonly CompleteNode[];
  readonly attestations: readonly ConsensusVote[];
  /** the effects of the docket's control transactions; undefined when it has none */
  readonly projection: Projection | undefined;
  /** keys that participants published in the docket, one row per address */
  readonly participants: readonly ParticipantKey[];
  /** the blueprints that the docket publishes, in docket order */
  readonly publications: readonly SealedPublication[];
}

/** `moved`: another process stored this number first, or the register does not accept dockets; nothing was written. */
export type CommitOutcome = 'stored' | 'moved' | 'already_sealed' | 'second_successor' | 'replay';

/** The index rows of a docket, without its records and payloads. */
export function indexedDocketOf({
  docket,
  transactions,
}: Pick<Omit<DocketCommit, 'docket'>, 'transactions'> & {
  readonly docket: Pick<DocketRow, 'docket_number' | 'hash' | 'previous_hash'>;
}): IndexedDocket {
  return {
    docketNumber: docket.docket_number,
    hash: docket.hash,
    previousHash: docket.previous_hash,
    rows: transactions.map((one) => ({
      txId: one.txId,
      type: one.type,
      senderAddress: one.senderAddress,
      recipients: one.recipients,
      blueprintId: one.blueprintId,
      actionId: one.actionId,
      instanceId: one.instanceId,
      previousTxId: one.previousTxId,
      createdMicros: one.createdMicros,
    })),
  };
}

/** The ids of a docket in COPY format. */
export function idsBuffer({ registerNo, segment, docket, transactions }: DocketCommit): Buffer {
  const rows = createCopyWriter();
  for (const [position, one] of transactions.entries()) {
    rows.row(8);
    rows.int4(registerNo);
    rows.int4(segment);
    rows.hex(one.txId);
    rows.int8(docket.docket_number);
    rows.int4(position);
    rows.text(one.type);
    rows.hex(one.replayKey);
    rows.flag(one.isStep);
  }
  return rows.finish();
}

/** The successors of a docket in COPY format; undefined when it has none. */
export function successorsBuffer({ registerNo, segment, transactions }: DocketCommit): Buffer | undefined {
  const links = transactions.filter((one) => one.onlySuccessor);
  if (links.length === 0) return undefined;
  const rows = createCopyWriter();
  for (const { previousTxId, txId } of links) {
    rows.row(4);
    rows.int4(registerNo);
    rows.int4(segment);
    rows.hex(previousTxId);
    rows.hex(txId);
  }
  return rows.finish();
}

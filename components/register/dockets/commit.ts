import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { CompleteNode } from '#core/ledger/merkle.ts';
import type { SealedPublication } from '../blueprints/record.ts';
import type { DocketRow } from '../database/schema.ts';
import type { ParticipantKey } from '../participants/record.ts';
import type { Projection } from '../rules/store.ts';
import { encodeCopyRows } from './copy-rows.ts';

export interface NewTransaction {
  readonly txId: string;
  readonly type: string;
  readonly senderAddress: string;
  /** as the index of recipients holds them */
  readonly recipients: readonly string[];
  readonly blueprintId: string | undefined;
  readonly actionId: string | undefined;
  readonly previousTxId: string | undefined;
  /** whether this is the one successor its predecessor may have (L-43) */
  readonly onlySuccessor: boolean;
  /** hex of what no second Action may repeat (L-39); undefined where nothing is compared */
  readonly replayKey: string | undefined;
  readonly createdMicros: number;
  readonly leaf: Uint8Array;
  readonly payloadHashForm: string;
  readonly record: Uint8Array;
  readonly payload: Uint8Array;
}

export interface DocketCommit {
  readonly registerNo: number;
  readonly registerId: string;
  /** the open segment of its keys, as the docket was judged by */
  readonly segment: number;
  readonly docket: Omit<DocketRow, 'register_no' | 'first_ordinal'>;
  readonly transactions: readonly NewTransaction[];
  readonly frontier: Uint8Array;
  readonly nodes: readonly CompleteNode[];
  readonly attestations: readonly ConsensusVote[];
  /** what the docket's control transactions decide; undefined when it has none */
  readonly projection: Projection | undefined;
  /** what the docket's participants published, one row an address */
  readonly participants: readonly ParticipantKey[];
  /** the blueprints that the docket publishes, in its order */
  readonly publications: readonly SealedPublication[];
}

/** `moved`: somebody else stored this number first, or the register takes none; nothing was written. */
export type CommitOutcome = 'stored' | 'moved' | 'already_sealed' | 'second_successor' | 'replay';

/** The transactions of a docket as COPY takes them. */
export function copyBuffer(commit: DocketCommit): Buffer {
  const text = (value: string | undefined) => (value === undefined ? null : { text: value });
  return encodeCopyRows(
    commit.transactions.map((one, position) => [
      { int4: commit.registerNo },
      { int8: commit.docket.docket_number },
      { int4: position },
      { bytes: Buffer.from(one.txId, 'hex') },
      { text: one.type },
      { text: one.senderAddress },
      text(one.blueprintId),
      text(one.actionId),
      one.previousTxId === undefined ? null : { bytes: Buffer.from(one.previousTxId, 'hex') },
      { int8: one.createdMicros },
      { bytes: one.leaf },
      { text: one.payloadHashForm },
      { bytes: one.record },
      { bytes: one.payload },
    ]),
  );
}

import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { CompleteNode } from '#core/ledger/merkle.ts';
import type { SealedPublication } from '../../../blueprints/publications/record.ts';
import type { DocketRow } from '../../../database/schema.ts';
import type { Projection } from '../../../governance/rules/store.ts';
import type { ParticipantKey } from '../../../queries/participants/record.ts';
import { encodeCopyRows } from './copy-rows.ts';

export interface NewTransaction {
  readonly txId: string;
  readonly type: string;
  readonly senderAddress: string;
  /** as in the index of recipients */
  readonly recipients: readonly string[];
  readonly blueprintId: string | undefined;
  readonly actionId: string | undefined;
  readonly previousTxId: string | undefined;
  /** whether the predecessor may have no other successor */
  readonly onlySuccessor: boolean;
  /** hex of the replay key, which no second Action may repeat; undefined for other types */
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

/** The transactions of a docket in COPY format. */
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

import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';

export interface SealedTransaction {
  /** the exact canonical bytes of the record */
  readonly record: Uint8Array;
  /** the exact hashed bytes of the payload */
  readonly payload: Uint8Array;
  readonly payloadHashForm: string;
}

/** A docket in a write request. */
export interface DocketBundle {
  readonly header: DocketHeader;
  readonly certificate: Certificate;
  readonly transactions: readonly SealedTransaction[];
  readonly attestations: readonly ConsensusVote[];
}

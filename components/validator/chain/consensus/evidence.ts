import type { Certificate } from '#core/ledger/certificate.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { Evidence } from './messages.ts';

/** Two certificates of one height: proof that more members failed than the set tolerates. */
interface CertificateConflict {
  readonly kind: 'conflicting-certificate';
  readonly first: Certificate;
  readonly second: Certificate;
}

/** Proof of a fault that any third party can verify against the validator set. */
export type PeerEvidence = Evidence | CertificateConflict;

/** The data that verify the signatures of evidence without knowledge of the register. */
export interface Proof {
  readonly networkId: string;
  /** Hash of the validator set at that height, lower hex. */
  readonly validatorSetHash: string;
  /** The convicted member; for two certificates the full set. */
  readonly signers: readonly ValidatorMember[];
  /** When this validator first received it. */
  readonly seenAtMs: number;
}

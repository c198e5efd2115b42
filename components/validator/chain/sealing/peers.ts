import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Docket } from '../building/docket.ts';
import type { Evidence, Message, Proposal } from '../consensus/messages.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { LoggedEvidence } from '../records/entries.ts';
import type { SealedDocket } from './ports.ts';

/** The connection of a register to its other members. Delivery may fail, repeat and reorder; consensus tolerates that. */
export interface Peers {
  /** Sets the current members of a register. */
  setMembers(registerId: string, members: readonly string[]): void;
  /** `docket` accompanies proposals. */
  broadcast(registerId: string, message: Message, docket: Docket | undefined): void;
  /**
   * The docket of a proposal with missing transactions, once they are available and verified as at admission; 'invalid' when one
   * of them may not be sealed. Waits while no peer has them and the height lasts.
   */
  findDocket(registerId: string, proposal: Proposal): Promise<Docket | 'invalid'>;
  /** Requests the commit of a missed height from a member. */
  requestCommit(registerId: string, height: number, validatorId: string): void;
  /** Announces transactions that were accepted here to the other members. */
  announce(registerId: string, transactions: readonly PooledTransaction[]): void;
  /** A docket was decided here. */
  decided(registerId: string, sealed: SealedDocket): void;
  /** Sends the own attestation of a docket to its writer. */
  attest(registerId: string, writer: string, docketNumber: number, vote: ConsensusVote): void;
  /** The register service holds `height` dockets; these members' attestations were stored with the last one. */
  stored(registerId: string, height: number, attested: readonly string[]): void;
  /** Reports two signed, conflicting messages of one member. */
  report(registerId: string, evidence: Evidence): void;
  /** Restores evidence from the log at start. */
  restoreEvidence(registerId: string, evidence: readonly LoggedEvidence[]): void;
  /** Whether a validator is silent or drains. */
  isAbsent(validatorId: string): boolean;
  /** Number of members heard within the register's operational TTL, including this one. */
  countOperational(registerId: string): number;
}

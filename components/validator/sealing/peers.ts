import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Docket } from '../building/docket.ts';
import type { Evidence, Message, Proposal } from '../consensus/messages.ts';
import type { LoggedEvidence } from '../log/entries.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { SealedDocket } from './ports.ts';

/** How a register's messages reach the other members. Delivery may fail, repeat and reorder; consensus copes. */
export interface Peers {
  /** Who the members are from now on. */
  follow(registerId: string, members: readonly string[]): void;
  /** `docket` comes with proposals. */
  broadcast(registerId: string, message: Message, docket: Docket | undefined): void;
  /**
   * The docket of a proposal whose transactions are not all at hand, once they are, verified as at admission; 'invalid' when
   * one of them may not be sealed. Waits as long as nobody has them and the height has not passed.
   */
  findDocket(registerId: string, proposal: Proposal): Promise<Docket | 'invalid'>;
  /** Asks a member for the commit of a height that was missed. */
  requestCommit(registerId: string, height: number, validatorId: string): void;
  /** Accepted and on disk here: the others should have them too (D17). */
  hint(registerId: string, transactions: readonly PooledTransaction[]): void;
  /** A docket was decided here. */
  decided(registerId: string, sealed: SealedDocket): void;
  /** Gives the own attestation of a docket to the member that writes it. */
  attest(registerId: string, writer: string, docketNumber: number, vote: ConsensusVote): void;
  /** The register service holds `height` dockets; the last one came with the attestations of these members. */
  stored(registerId: string, height: number, attested: readonly string[]): void;
  /** Conflicting messages of one member, both signed. */
  report(registerId: string, evidence: Evidence): void;
  /** Proven faults that were in the log when the validator started. */
  recall(registerId: string, evidence: readonly LoggedEvidence[]): void;
  /** Whether a validator has been silent for longer than its heartbeats allow. */
  isAway(validatorId: string): boolean;
  /** How many members of a register were heard within its operational TTL, this one included. */
  countOperational(registerId: string): number;
}

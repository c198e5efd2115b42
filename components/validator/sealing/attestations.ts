import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Logger } from '#kit/log/log.ts';
import { signerIn } from './own-key.ts';
import type { Peers } from './peers.ts';
import type { Ledger, Signer } from './ports.ts';
import { signVote, type VoteSigning } from './vote.ts';

export interface AttestationsOptions extends VoteSigning {
  readonly log: Logger;
  readonly ledger: Pick<Ledger, 'appendAttestation'>;
  readonly peers: Pick<Peers, 'attest'>;
}

interface Pending {
  readonly vote: Promise<ConsensusVote | undefined>;
  /** The member that stored the docket says that it stored this one's vote with it. */
  isStored: boolean;
}

/** Dockets whose fate is not known; more than run ahead of the store (D19). */
const mostPending = 64;

/**
 * This member's votes of the specification over decided dockets of one register. The member that writes a docket stores
 * those it has by then; this one adds its own afterwards when it was late.
 */
export class Attestations {
  readonly #registerId: string;
  readonly #options: AttestationsOptions;
  readonly #pending = new Map<number, Pending>();

  constructor(registerId: string, options: AttestationsOptions) {
    this.#registerId = registerId;
    this.#options = options;
  }

  /**
   * Signs the vote over a decided docket and tells the member that writes it. Only who is in the set of its height votes:
   * another vote would keep the docket out of the store.
   */
  attest(
    header: DocketHeader,
    writer: string,
    members: readonly ValidatorMember[],
  ): Promise<ConsensusVote | undefined> {
    const { self, peers, signer } = this.#options;
    if (!members.some((member) => member.validatorId === self)) return Promise.resolve(undefined);
    const { docketNumber } = header;
    const vote = this.#sign(header, signerIn(members, self, signer));
    this.#pending.set(docketNumber, { vote, isStored: false });
    const [oldest] = this.#pending.keys();
    if (this.#pending.size > mostPending && oldest !== undefined) this.#pending.delete(oldest);
    if (writer !== self) {
      void vote.then((signed) => signed && peers.attest(this.#registerId, writer, docketNumber, signed));
    }
    return vote;
  }

  /** What the writer says of a docket. */
  hear(docketNumber: number, attested: readonly string[]): void {
    const pending = this.#pending.get(docketNumber);
    if (pending !== undefined && attested.includes(this.#options.self)) pending.isStored = true;
  }

  /** The docket is stored. */
  async stored(docketNumber: number): Promise<void> {
    const pending = this.#pending.get(docketNumber);
    this.#pending.delete(docketNumber);
    const vote = await pending?.vote;
    if (pending === undefined || pending.isStored || vote === undefined) return;
    const { ledger, log } = this.#options;
    try {
      await ledger.appendAttestation(this.#registerId, docketNumber, vote);
    } catch (error) {
      log.warn({ err: error, registerId: this.#registerId, docketNumber }, 'attestation not added');
    }
  }

  /** A docket is stored without the vote rather than late. */
  async #sign(header: DocketHeader, signer: Signer): Promise<ConsensusVote | undefined> {
    const { hash: docketHash, registerId, docketNumber } = header;
    try {
      return await signVote({ ...this.#options, signer }, { registerId, docketHash });
    } catch (error) {
      this.#options.log.warn({ err: error, registerId, docketNumber }, 'docket not attested');
      return undefined;
    }
  }
}

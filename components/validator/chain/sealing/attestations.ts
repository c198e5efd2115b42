import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Peers } from './peers.ts';
import type { Ledger, Signer } from './ports.ts';
import { signerFor } from './signer-key.ts';
import { draftVote, signVote, type VoteDraft, type VoteSigning } from './vote.ts';

interface AttestationsOptions extends VoteSigning {
  readonly log: Logger;
  readonly ledger: Pick<Ledger, 'appendAttestation'>;
  readonly peers: Pick<Peers, 'attest'>;
}

interface PendingAttestation {
  readonly vote: Promise<ConsensusVote | undefined>;
  /** The writer reported that it stored this member's vote with the docket. */
  isStored: boolean;
}

/** Bound of dockets with an unknown outcome; above the number of dockets that may wait to be stored. */
const maxPending = 64;

/**
 * This member's attestations (votes in the specification's shape) of decided dockets of one register. The writer of a docket
 * stores the attestations it has received by then; this member appends its own when it was late.
 */
export class Attestations {
  readonly #registerId: string;
  readonly #options: AttestationsOptions;
  readonly #pending = new Map<number, PendingAttestation>();
  /** The attestation that was signed together with the precommit of its docket. */
  #signed: ConsensusVote | undefined;

  constructor(registerId: string, options: AttestationsOptions) {
    this.#registerId = registerId;
    this.#options = options;
  }

  /**
   * Drafts the attestation of a docket that this member decides alone, to be signed together with its precommit. Once complete
   * it is used by `attest`.
   */
  draft(header: DocketHeader, members: readonly ValidatorMember[]): VoteDraft {
    const signer = signerFor(members, this.#options.self, this.#options.signer);
    const { hash: docketHash, registerId } = header;
    const draft = draftVote({ ...this.#options, signer }, { registerId, docketHash });
    return {
      request: draft.request,
      complete: (signature) => {
        const vote = draft.complete(signature);
        this.#signed = vote;
        return vote;
      },
    };
  }

  /**
   * Signs the attestation of a decided docket and sends it to the writer. Only members of the docket's set attest, because the
   * register service refuses a docket with any other attestation.
   */
  attest(
    header: DocketHeader,
    writer: string,
    members: readonly ValidatorMember[],
  ): Promise<ConsensusVote | undefined> {
    const { self, peers, signer } = this.#options;
    if (!members.some((member) => member.validatorId === self)) return Promise.resolve(undefined);
    const { docketNumber } = header;
    const vote = this.#sign(header, signerFor(members, self, signer));
    this.#pending.set(docketNumber, { vote, isStored: false });
    const [oldest] = this.#pending.keys();
    if (this.#pending.size > maxPending && oldest !== undefined) this.#pending.delete(oldest);
    if (writer !== self) {
      void vote.then((signed) => signed && peers.attest(this.#registerId, writer, docketNumber, signed));
    }
    return vote;
  }

  /** Handles the writer's report about a docket. */
  onWriterReport(docketNumber: number, attested: readonly string[]): void {
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
      log.warn(
        { err: error, registerId: this.#registerId, docketNumber },
        'the register service did not accept the attestation of a stored docket',
      );
    }
  }

  /** A docket is stored without the attestation rather than late. */
  async #sign(header: DocketHeader, signer: Signer): Promise<ConsensusVote | undefined> {
    const { hash: docketHash, registerId, docketNumber } = header;
    const signed = this.#signed;
    this.#signed = undefined;
    if (signed?.docketHash === docketHash && signed.publicKey === signer.key.publicKey) return signed;
    try {
      return await signVote({ ...this.#options, signer }, { registerId, docketHash });
    } catch (error) {
      this.#options.log.warn(
        { err: error, registerId, docketNumber },
        'the attestation of a docket could not be signed; the docket is stored without it',
      );
      return undefined;
    }
  }
}

import type { Violation } from '#core/errors/errors.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Proposal } from '../consensus/messages.ts';
import type { Peers } from './peers.ts';
import { signerFor } from './signer-key.ts';
import { signVote, type VoteSigning } from './vote.ts';

interface RejectionsOptions extends VoteSigning {
  readonly log: Logger;
  readonly peers: Pick<Peers, 'attest'>;
}

/** A member's signed statement, with a reason, that a proposed docket was invalid. */
export interface Rejection {
  readonly docketNumber: number;
  readonly vote: ConsensusVote;
}

/** Bounds: rejections of one member at one height, rejections kept of one member, members kept. */
const maxPerHeight = 4;
const maxPerMember = 8;
const maxMembers = 128;
const maxReasonLength = 500;

/**
 * Rejected proposals of one register: attestations with `approved` false, signed by a member that judged a proposal invalid.
 * They inform operators only: consensus never sees them, no docket contains them, and they are lost at a restart.
 */
export class Rejections {
  readonly #registerId: string;
  readonly #options: RejectionsOptions;
  /** By member, the most recently heard last. */
  readonly #kept = new Map<string, readonly Rejection[]>();
  /** Docket hashes whose rejection is being signed. */
  readonly #signing = new Set<string>();

  constructor(registerId: string, options: RejectionsOptions) {
    this.#registerId = registerId;
    this.#options = options;
  }

  /** Oldest height first; at most 8 of each member. */
  get all(): readonly Rejection[] {
    return [...this.#kept.values()].flat().toSorted((one, other) => one.docketNumber - other.docketNumber);
  }

  /** Sends a rejection of a proposal to all members: only as a member of the set, and once per docket. */
  reject(proposal: Proposal, found: readonly Violation[], members: readonly ValidatorMember[]): void {
    const { self, log } = this.#options;
    const { height: docketNumber, round, value } = proposal;
    const place = { registerId: this.#registerId, docketNumber, round, proposer: proposal.validatorId };
    log.warn({ ...place, violations: found }, 'a proposal was judged invalid');
    const key = { docketNumber, docketHash: value.hash, validatorId: self };
    const isMember = members.some(({ validatorId }) => validatorId === self);
    if (isMember && this.isNew(key)) void this.#announce(key, reasonOf(found), members);
  }

  /** Whether a rejection is new and within its member's bounds. Checked before the signature is verified. */
  isNew({ docketNumber, docketHash, validatorId }: RejectionKey): boolean {
    if (validatorId === this.#options.self && this.#signing.has(docketHash)) return false;
    const same = (this.#kept.get(validatorId) ?? []).filter((each) => each.docketNumber === docketNumber);
    const own = validatorId === this.#options.self ? this.#signing.size : 0;
    return same.length + own < maxPerHeight && same.every(({ vote }) => vote.docketHash !== docketHash);
  }

  /** Adds another member's rejection; the caller has verified it. */
  add(docketNumber: number, vote: ConsensusVote): void {
    this.#keep({ docketNumber, vote });
  }

  async #announce(
    { docketNumber, docketHash }: RejectionKey,
    reason: string,
    members: readonly ValidatorMember[],
  ): Promise<void> {
    const { self, peers, log, clock } = this.#options;
    const signer = signerFor(members, self, this.#options.signer);
    const registerId = this.#registerId;
    this.#signing.add(docketHash);
    try {
      const vote = await signVote({ self, clock, signer }, { registerId, docketHash, reason });
      this.#keep({ docketNumber, vote });
      for (const { validatorId } of members) {
        if (validatorId !== self) peers.attest(registerId, validatorId, docketNumber, vote);
      }
    } catch (error) {
      log.warn({ err: error, registerId, docketNumber }, 'the rejection of a proposal could not be signed');
    } finally {
      this.#signing.delete(docketHash);
    }
  }

  #keep(rejection: Rejection): void {
    const { validatorId } = rejection.vote;
    const kept = [...(this.#kept.get(validatorId) ?? []), rejection].slice(-maxPerMember);
    this.#kept.delete(validatorId);
    this.#kept.set(validatorId, kept);
    const [longest] = this.#kept.keys();
    if (this.#kept.size > maxMembers && longest !== undefined) this.#kept.delete(longest);
  }
}

interface RejectionKey {
  readonly docketNumber: number;
  readonly docketHash: string;
  readonly validatorId: string;
}

/** Code and message of the first violation. */
function reasonOf([first]: readonly Violation[]): string {
  const reason =
    first === undefined
      ? 'A transaction may not be sealed in this docket'
      : `${first.code}: ${first.message}`;
  return reason.slice(0, maxReasonLength);
}

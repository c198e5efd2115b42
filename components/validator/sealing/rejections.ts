import type { Violation } from '#core/errors/errors.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Proposal } from '../consensus/messages.ts';
import { signerIn } from './own-key.ts';
import type { Peers } from './peers.ts';
import { signVote, type VoteSigning } from './vote.ts';

export interface RejectionsOptions extends VoteSigning {
  readonly log: Logger;
  readonly peers: Pick<Peers, 'attest'>;
}

/** A member's word, with its reason, that a proposed docket was invalid. */
export interface Rejection {
  readonly docketNumber: number;
  readonly vote: ConsensusVote;
}

/** What one member may say of one height, what is kept of one member, and how many members are kept. */
const mostOfHeight = 4;
const mostOfMember = 8;
const mostMembers = 128;
const mostReasonLength = 500;

/**
 * Rejected proposals of one register: the specification's vote with `approved` false, signed by a member that judged a
 * proposal invalid (notes/ledger.md 4.1, 4.3). They are news for operators and nothing else: the machine never sees them,
 * no docket holds them, and a restart forgets them.
 */
export class Rejections {
  readonly #registerId: string;
  readonly #options: RejectionsOptions;
  /** By member; who was heard last stands last. */
  readonly #kept = new Map<string, readonly Rejection[]>();
  /** What this member is about to say: the signer takes its time. */
  readonly #saying = new Set<string>();

  constructor(registerId: string, options: RejectionsOptions) {
    this.#registerId = registerId;
    this.#options = options;
  }

  /** Oldest height first; at most 8 of each member. */
  get all(): readonly Rejection[] {
    return [...this.#kept.values()].flat().toSorted((one, other) => one.docketNumber - other.docketNumber);
  }

  /** Says to all members that a proposal was invalid. Only who is in the set speaks, and of one docket once. */
  reject(proposal: Proposal, found: readonly Violation[], members: readonly ValidatorMember[]): void {
    const { self, log } = this.#options;
    const { height: docketNumber, round, value } = proposal;
    const place = { registerId: this.#registerId, docketNumber, round, proposer: proposal.validatorId };
    log.warn({ ...place, violations: found }, 'proposal refused');
    const news = { docketNumber, docketHash: value.hash, validatorId: self };
    const isMember = members.some(({ validatorId }) => validatorId === self);
    if (isMember && this.isNews(news)) void this.#say(news, reasonOf(found), members);
  }

  /** Whether a rejection would be kept: new, and not one too many of its member. Asked before anything is verified. */
  isNews({ docketNumber, docketHash, validatorId }: Named): boolean {
    if (validatorId === this.#options.self && this.#saying.has(docketHash)) return false;
    const same = (this.#kept.get(validatorId) ?? []).filter((each) => each.docketNumber === docketNumber);
    const own = validatorId === this.#options.self ? this.#saying.size : 0;
    return same.length + own < mostOfHeight && same.every(({ vote }) => vote.docketHash !== docketHash);
  }

  /** Another member's rejection, verified. */
  hear(docketNumber: number, vote: ConsensusVote): void {
    this.#keep({ docketNumber, vote });
  }

  async #say(
    { docketNumber, docketHash }: Named,
    reason: string,
    members: readonly ValidatorMember[],
  ): Promise<void> {
    const { self, peers, log, clock } = this.#options;
    const signer = signerIn(members, self, this.#options.signer);
    const registerId = this.#registerId;
    this.#saying.add(docketHash);
    try {
      const vote = await signVote({ self, clock, signer }, { registerId, docketHash, reason });
      this.#keep({ docketNumber, vote });
      for (const { validatorId } of members) {
        if (validatorId !== self) peers.attest(registerId, validatorId, docketNumber, vote);
      }
    } catch (error) {
      log.warn({ err: error, registerId, docketNumber }, 'rejection not signed');
    } finally {
      this.#saying.delete(docketHash);
    }
  }

  #keep(rejection: Rejection): void {
    const { validatorId } = rejection.vote;
    const kept = [...(this.#kept.get(validatorId) ?? []), rejection].slice(-mostOfMember);
    this.#kept.delete(validatorId);
    this.#kept.set(validatorId, kept);
    const [longest] = this.#kept.keys();
    if (this.#kept.size > mostMembers && longest !== undefined) this.#kept.delete(longest);
  }
}

interface Named {
  readonly docketNumber: number;
  readonly docketHash: string;
  readonly validatorId: string;
}

/** Code and message of the first thing that is wrong. */
function reasonOf([first]: readonly Violation[]): string {
  const reason =
    first === undefined ? 'A transaction may not be sealed there' : `${first.code}: ${first.message}`;
  return reason.slice(0, mostReasonLength);
}

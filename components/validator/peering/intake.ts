import type { Verifier } from '#core/crypto/verify.ts';
import { type ConsensusVote, verifyVote } from '#core/ledger/attestation.ts';
import type { Docket } from '../building/docket.ts';
import { proposerOf } from '../consensus/members.ts';
import type { Message, Proposal } from '../consensus/messages.ts';
import { agrees, isProposal, votesOf } from '../consensus/round.ts';
import type { Register } from '../sealing/register-chain.ts';
import { assembleAtHand } from './assemble.ts';
import { isAuthentic, isProposed } from './authenticate.ts';
import type { CatchUp } from './catch-up.ts';
import type { Commits } from './commit-cache.ts';
import type { Suspicions } from './equivocation-detector.ts';
import type { Witness } from './evidence-collector.ts';
import type { Fetcher } from './fetch.ts';
import type { Presence } from './presence.ts';
import type { Offers } from './proposal-cache.ts';
import type { Gossip } from './round-gossip.ts';
import type { Hints } from './transaction-gossip.ts';
import type { Envelope, Head, ProposalEnvelope, RoundState } from './transport.ts';
import type { Strangers } from './unknown-registers.ts';
import type { VoterHistory } from './voter-history.ts';

export interface IntakeOptions {
  readonly self: string;
  readonly verifier: Verifier;
  readonly fetcher: Fetcher;
  readonly presence: Presence;
  readonly commits: Commits;
  readonly offers: Offers;
  readonly voters: VoterHistory;
  readonly witness: Witness;
  readonly catchUp: CatchUp;
  readonly gossip: Gossip;
  readonly hints: Hints;
  readonly strangers: Strangers;
  readonly suspicions: Suspicions;
  find(registerId: string): Register | undefined;
  /** Sends a message to one validator, whichever member signed it. */
  pass(register: Register, to: string, message: Message): void;
  /** Records a protocol violation of the sender. */
  charge(validatorId: string, reason: string): void;
}

/** Authenticates messages of other validators and dispatches them. */
export class Intake {
  readonly #options: IntakeOptions;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  take(from: string, envelope: Envelope): void {
    const { presence, strangers, find } = this.#options;
    if (envelope.kind === 'heartbeat') {
      presence.greeted(from, envelope);
      presence.heard(from);
      for (const head of envelope.heads) this.#onHead(from, head);
      return;
    }
    const register = find(envelope.registerId);
    if (register === undefined) {
      strangers.keepEarly(from, envelope);
      strangers.meet(from, envelope.registerId);
    } else if (isMember(register, from)) {
      presence.heard(from);
      this.#dispatch(register, from, envelope);
    } else {
      this.#onOutsider(register, from, envelope);
    }
  }

  /** A former member may not know that it left the set, and its accepted transactions must not be lost. */
  #onOutsider(register: Register, from: string, envelope: Exclude<Envelope, { kind: 'heartbeat' }>): void {
    if (envelope.kind === 'round-state') this.#onHead(from, envelope);
    if (envelope.kind !== 'hint') return;
    this.#options.gossip.tell(register, from);
    void this.#options.hints.take(register, from, envelope);
  }

  /** A register has begun here: replays the messages that were buffered for it. */
  begin(registerId: string): void {
    for (const { from, envelope } of this.#options.strangers.takeEarly(registerId)) this.take(from, envelope);
  }

  #dispatch(register: Register, from: string, envelope: Exclude<Envelope, { kind: 'heartbeat' }>): void {
    switch (envelope.kind) {
      case 'proposal':
        this.#onProposal(register, from, envelope);
        break;
      case 'vote':
        this.#onMessage(register, from, envelope.vote);
        break;
      case 'attestation':
        if (envelope.vote.approved) this.#onAttestation(register, from, envelope.docketNumber, envelope.vote);
        else this.#onRejection(register, from, envelope.docketNumber, envelope.vote);
        break;
      case 'round-state':
        this.#onRoundState(register, from, envelope);
        break;
      case 'hint':
        void this.#options.hints.take(register, from, envelope);
        break;
      case 'stored':
        register.hearStored(envelope.height, envelope.attested);
        break;
      case 'evidence':
        if (!this.#options.witness.take(from, register.id, envelope.evidence)) {
          this.#options.charge(from, 'evidence');
        }
        break;
    }
  }

  #onProposal(register: Register, from: string, envelope: ProposalEnvelope): void {
    if (!isProposed(envelope)) {
      this.#options.charge(from, 'proposal');
      return;
    }
    const { proposal } = envelope;
    const { height, rules } = register.state;
    if (envelope.recordHashes.length > rules.maxTransactionsPerDocket && proposal.height <= height) return;
    if (proposal.height > height + 1) {
      this.#onMessage(register, from, proposal);
    } else if (proposal.height < height) {
      this.#onOldProposal(register, from, proposal);
    } else if (this.#isAuthentic(register, from, proposal)) {
      if (proposal.height === height && !isProposer(register, proposal)) {
        this.#options.charge(from, 'proposal');
        return;
      }
      this.#options.suspicions.note(register.id, proposal);
      this.#options.offers.add(from, envelope);
      const docket = proposal.height === height ? assembleAtHand(register, envelope) : undefined;
      this.#hand(register, from, proposal, docket === 'invalid' ? undefined : docket);
    }
  }

  /** A proposal of a decided height counts only as evidence, when it contradicts what its proposer sent here. */
  #onOldProposal(register: Register, from: string, proposal: Proposal): void {
    const { suspicions, voters, witness, verifier, charge } = this.#options;
    if (!suspicions.isNews(register.id, proposal)) return;
    voters.note(register);
    const then = voters.find(register.id, proposal.height);
    if (then === undefined) return;
    const found = isAuthentic(then, proposal, verifier) ? suspicions.note(register.id, proposal) : undefined;
    if (found === undefined) charge(from, 'signature');
    else witness.take(from, register.id, found);
  }

  /** A message of a later height may be of an unknown set; it only shows that this member is behind. */
  #onMessage(register: Register, from: string, message: Message): void {
    const { height } = register.state;
    if (message.height < height) return;
    if (message.height > height + 1) this.#options.catchUp.request(register, from, message.height);
    else if (this.#isAuthentic(register, from, message)) this.#hand(register, from, message, undefined);
  }

  #isAuthentic(register: Register, from: string, message: Message): boolean {
    if (isAuthentic(register.state, message, this.#options.verifier)) return true;
    if (message.height === register.state.height) this.#options.charge(from, 'signature');
    else this.#options.catchUp.request(register, from, message.height);
    return false;
  }

  #hand(register: Register, from: string, message: Message, docket: Docket | undefined): void {
    const { presence, gossip, suspicions } = this.#options;
    if (message.validatorId === from) {
      const { height, round } = message;
      presence.placed(from, { registerId: register.id, height, round, headHash: '' });
      // One contradiction is enough evidence; further ones still cost verification and count against their sender.
      if (contradicts(register, message)) this.#options.charge(from, 'equivocation');
    }
    register.receive(message, docket);
    gossip.watch(register);
    const proposal = register.machine.rounds.get(message.round)?.proposal;
    for (const voter of suspicions.contradicted(register, message)) {
      if (proposal !== undefined) this.#options.pass(register, voter, proposal);
    }
  }

  #onRoundState(register: Register, from: string, state: RoundState): void {
    const { gossip } = this.#options;
    this.#onHead(from, state);
    if (state.height < register.state.height) gossip.tell(register, from);
    else if (state.height === register.state.height) gossip.take(register, from, state);
  }

  /** Handles the head of a register at another validator. */
  #onHead(from: string, { registerId, height, round, headHash }: Head): void {
    const { presence, strangers, catchUp, find, self, gossip } = this.#options;
    const register = find(registerId);
    if (register === undefined) {
      strangers.meet(from, registerId);
      return;
    }
    const { state } = register;
    if (!isMember(register, from)) {
      if (height < state.height) gossip.tell(register, from);
      else if (!isMember(register, self)) strangers.meet(from, registerId);
      return;
    }
    presence.placed(from, { registerId, height, round, headHash });
    if (height > state.height) catchUp.request(register, from, height);
    if (height === state.height && height > 0 && headHash !== state.headHash) {
      void this.#compareCommits(register, from, height - 1);
    }
  }

  /** The peer has another head at this height: either two certificates of one height exist, or the peer is faulty. */
  async #compareCommits(register: Register, from: string, height: number): Promise<void> {
    const { commits, strangers, fetcher, witness, charge } = this.#options;
    const own = commits.find(register.id, height);
    if (own === undefined || !strangers.mayAsk(from, register.id)) return;
    const theirs = await fetcher.commit(from, register.id, height);
    if (theirs === undefined || theirs.header.hash === own.docket.header.hash) return;
    const [first, second] = [own.certificate, theirs.certificate];
    if (!witness.take(from, register.id, { kind: 'conflicting-certificate', first, second })) {
      charge(from, 'commit');
    }
  }

  #onAttestation(register: Register, from: string, docketNumber: number, vote: ConsensusVote): void {
    const { voters, verifier, charge } = this.#options;
    const then = voters.find(register.id, docketNumber);
    const member = then?.members.find(({ validatorId }) => validatorId === vote.validatorId);
    const isTheirs = vote.validatorId === from && vote.reason === undefined;
    const isRight = isTheirs && (member === undefined || member.publicKey === vote.publicKey);
    if (!isRight || !verifyVote(vote, verifier)) charge(from, 'attestation');
    else if (member !== undefined) register.hearAttestation(docketNumber, vote);
  }

  /** Only rejections of the current and the previous docket count; others are dropped without penalty. */
  #onRejection(register: Register, from: string, docketNumber: number, vote: ConsensusVote): void {
    const { voters, verifier, charge } = this.#options;
    const { height } = register.state;
    if (vote.validatorId !== from || vote.reason === undefined) {
      charge(from, 'attestation');
      return;
    }
    if (docketNumber !== height && docketNumber !== height - 1) return;
    voters.note(register);
    const { docketHash, validatorId } = vote;
    const then = voters.find(register.id, docketNumber);
    const member = then?.members.find((each) => each.validatorId === validatorId);
    if (member === undefined || !register.rejections.isNews({ docketNumber, docketHash, validatorId }))
      return;
    if (member.publicKey !== vote.publicKey || !verifyVote(vote, verifier)) charge(from, 'attestation');
    else register.rejections.hear(docketNumber, vote);
  }
}

/** Whether the sender has signed a conflicting message before. */
function contradicts({ machine }: Register, message: Message): boolean {
  const round = machine.rules.height === message.height ? machine.rounds.get(message.round) : undefined;
  if (round === undefined) return false;
  const earlier = isProposal(message)
    ? round.proposal
    : votesOf(round, message.kind).get(message.validatorId);
  return earlier?.validatorId === message.validatorId && !agrees(earlier, message);
}

function isProposer({ machine }: Register, { height, round, validatorId }: Proposal): boolean {
  return proposerOf(machine.rules.members, height, round) === validatorId;
}

/** Whether a validator decides the register's next docket. */
export function isMember(register: Register, validatorId: string): boolean {
  return register.state.members.some((member) => member.validatorId === validatorId);
}

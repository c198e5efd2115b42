import type { Verifier } from '#core/crypto/verify.ts';
import { type ConsensusVote, verifyVote } from '#core/ledger/attestation.ts';
import { proposerOf } from '#core/ledger/consensus.ts';
import type { Docket } from '../../chain/building/docket.ts';
import type { Message, Proposal } from '../../chain/consensus/messages.ts';
import { agrees, isProposal, votesOf } from '../../chain/consensus/round.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { isMember } from '../../chain/state/state.ts';
import { hasProposedContent, isAuthentic } from '../evidence/authenticate.ts';
import type { EquivocationDetector } from '../evidence/equivocation-detector.ts';
import type { EvidenceCollector } from '../evidence/evidence-collector.ts';
import type { VoterHistory } from '../evidence/voter-history.ts';
import type { Envelope, Head, ProposalEnvelope, RoundState } from '../transport/transport.ts';
import { assembleFromPool } from './assemble.ts';
import type { CatchUp } from './catch-up.ts';
import type { CommitCache } from './commit-cache.ts';
import type { Fetcher } from './fetch.ts';
import type { Presence } from './presence.ts';
import type { ProposalCache } from './proposal-cache.ts';
import type { RoundGossip } from './round-gossip.ts';
import type { TransactionGossip } from './transaction-gossip.ts';
import type { UnknownRegisters } from './unknown-registers.ts';

interface IntakeOptions {
  readonly self: string;
  readonly verifier: Verifier;
  readonly fetcher: Fetcher;
  readonly presence: Presence;
  readonly commits: CommitCache;
  readonly proposals: ProposalCache;
  readonly voters: VoterHistory;
  readonly evidenceCollector: EvidenceCollector;
  readonly catchUp: CatchUp;
  readonly gossip: RoundGossip;
  readonly transactionGossip: TransactionGossip;
  readonly unknownRegisters: UnknownRegisters;
  readonly equivocationDetector: EquivocationDetector;
  find(registerId: string): RegisterChain | undefined;
  /** Sends a message to one validator, whichever member signed it. */
  forward(register: RegisterChain, to: string, message: Message): void;
  /** Records a protocol violation of the sender. */
  reportFault(validatorId: string, reason: string): void;
}

/** Authenticates messages of other validators and dispatches them. */
export class Intake {
  readonly #options: IntakeOptions;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  dispatch(from: string, envelope: Envelope): void {
    const { presence, unknownRegisters, find } = this.#options;
    if (envelope.kind === 'heartbeat') {
      presence.onHeartbeat(from, envelope);
      presence.heard(from);
      for (const head of envelope.heads) this.#onHead(from, head);
      return;
    }
    const register = find(envelope.registerId);
    if (register === undefined) {
      unknownRegisters.bufferEarly(from, envelope);
      unknownRegisters.discover(from, envelope.registerId);
    } else if (isMember(register, from)) {
      presence.heard(from);
      this.#dispatchMember(register, from, envelope);
    } else {
      this.#onNonMember(register, from, envelope);
    }
  }

  /** A former member may not know that it left the set, and its accepted transactions must not be lost. */
  #onNonMember(
    register: RegisterChain,
    from: string,
    envelope: Exclude<Envelope, { kind: 'heartbeat' }>,
  ): void {
    if (envelope.kind === 'round-state') this.#onHead(from, envelope);
    if (envelope.kind !== 'hint') return;
    this.#options.gossip.sendState(register, from);
    void this.#options.transactionGossip.admit(register, from, envelope);
  }

  /** A register has begun here: replays the messages that were buffered for it. */
  begin(registerId: string): void {
    for (const { from, envelope } of this.#options.unknownRegisters.takeEarly(registerId))
      this.dispatch(from, envelope);
  }

  #dispatchMember(
    register: RegisterChain,
    from: string,
    envelope: Exclude<Envelope, { kind: 'heartbeat' }>,
  ): void {
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
        void this.#options.transactionGossip.admit(register, from, envelope);
        break;
      case 'stored':
        register.onStoredReport(envelope.height, envelope.attested);
        break;
      case 'evidence':
        if (!this.#options.evidenceCollector.take(from, register.id, envelope.evidence)) {
          this.#options.reportFault(from, 'evidence');
        }
        break;
    }
  }

  #onProposal(register: RegisterChain, from: string, envelope: ProposalEnvelope): void {
    if (!hasProposedContent(envelope)) {
      this.#options.reportFault(from, 'proposal');
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
        this.#options.reportFault(from, 'proposal');
        return;
      }
      this.#options.equivocationDetector.record(register.id, proposal);
      this.#options.proposals.add(from, envelope);
      const docket = proposal.height === height ? assembleFromPool(register, envelope) : undefined;
      this.#deliver(register, from, proposal, docket === 'invalid' ? undefined : docket);
    }
  }

  /** A proposal of a decided height counts only as evidence, when it contradicts what its proposer sent here. */
  #onOldProposal(register: RegisterChain, from: string, proposal: Proposal): void {
    const { equivocationDetector, voters, evidenceCollector, verifier, reportFault } = this.#options;
    if (!equivocationDetector.isContradiction(register.id, proposal)) return;
    voters.record(register);
    const validatorSet = voters.find(register.id, proposal.height);
    if (validatorSet === undefined) return;
    const found = isAuthentic(validatorSet, proposal, verifier)
      ? equivocationDetector.record(register.id, proposal)
      : undefined;
    if (found === undefined) reportFault(from, 'signature');
    else evidenceCollector.take(from, register.id, found);
  }

  /** A message of a later height may be of an unknown set; it only shows that this member is behind. */
  #onMessage(register: RegisterChain, from: string, message: Message): void {
    const { height } = register.state;
    if (message.height < height) return;
    if (message.height > height + 1) this.#options.catchUp.request(register, from, message.height);
    else if (this.#isAuthentic(register, from, message)) this.#deliver(register, from, message, undefined);
  }

  #isAuthentic(register: RegisterChain, from: string, message: Message): boolean {
    if (isAuthentic(register.state, message, this.#options.verifier)) return true;
    if (message.height === register.state.height) this.#options.reportFault(from, 'signature');
    else this.#options.catchUp.request(register, from, message.height);
    return false;
  }

  #deliver(register: RegisterChain, from: string, message: Message, docket: Docket | undefined): void {
    const { presence, gossip, equivocationDetector } = this.#options;
    if (message.validatorId === from) {
      const { height, round } = message;
      presence.onHead(from, { registerId: register.id, height, round, headHash: '' });
      // One contradiction is enough evidence; further ones still cost verification and count against their sender.
      if (contradicts(register, message)) this.#options.reportFault(from, 'equivocation');
    }
    register.receive(message, docket);
    gossip.watch(register);
    const proposal = register.machine.rounds.get(message.round)?.proposal;
    for (const voter of equivocationDetector.findContradicting(register, message)) {
      if (proposal !== undefined) this.#options.forward(register, voter, proposal);
    }
  }

  #onRoundState(register: RegisterChain, from: string, state: RoundState): void {
    const { gossip } = this.#options;
    this.#onHead(from, state);
    if (state.height < register.state.height) gossip.sendState(register, from);
    else if (state.height === register.state.height) gossip.take(register, from, state);
  }

  /** Handles the head of a register at another validator. */
  #onHead(from: string, { registerId, height, round, headHash }: Head): void {
    const { presence, unknownRegisters, catchUp, find, self, gossip } = this.#options;
    const register = find(registerId);
    if (register === undefined) {
      unknownRegisters.discover(from, registerId);
      return;
    }
    const { state } = register;
    if (!isMember(register, from)) {
      if (height < state.height) gossip.sendState(register, from);
      else if (!isMember(register, self)) unknownRegisters.discover(from, registerId);
      return;
    }
    presence.onHead(from, { registerId, height, round, headHash });
    if (height > state.height) catchUp.request(register, from, height);
    if (height === state.height && height > 0 && headHash !== state.headHash) {
      void this.#compareCommits(register, from, height - 1);
    }
  }

  /** The peer has another head at this height: either two certificates of one height exist, or the peer is faulty. */
  async #compareCommits(register: RegisterChain, from: string, height: number): Promise<void> {
    const { commits, unknownRegisters, fetcher, evidenceCollector, reportFault } = this.#options;
    const own = commits.find(register.id, height);
    if (own === undefined || !unknownRegisters.mayRequest(from, register.id)) return;
    const theirs = await fetcher.commit(from, register.id, height);
    if (theirs === undefined || theirs.header.hash === own.docket.header.hash) return;
    const [first, second] = [own.certificate, theirs.certificate];
    if (!evidenceCollector.take(from, register.id, { kind: 'conflicting-certificate', first, second })) {
      reportFault(from, 'commit');
    }
  }

  #onAttestation(register: RegisterChain, from: string, docketNumber: number, vote: ConsensusVote): void {
    const { voters, verifier, reportFault } = this.#options;
    const validatorSet = voters.find(register.id, docketNumber);
    const member = validatorSet?.members.find(({ validatorId }) => validatorId === vote.validatorId);
    const isTheirs = vote.validatorId === from && vote.reason === undefined;
    const isRight = isTheirs && (member === undefined || member.publicKey === vote.publicKey);
    if (!isRight || !verifyVote(vote, verifier)) reportFault(from, 'attestation');
    else if (member !== undefined) register.addAttestation(docketNumber, vote);
  }

  /** Only rejections of the current and the previous docket count; others are dropped without penalty. */
  #onRejection(register: RegisterChain, from: string, docketNumber: number, vote: ConsensusVote): void {
    const { voters, verifier, reportFault } = this.#options;
    const { height } = register.state;
    if (vote.validatorId !== from || vote.reason === undefined) {
      reportFault(from, 'attestation');
      return;
    }
    if (docketNumber !== height && docketNumber !== height - 1) return;
    voters.record(register);
    const { docketHash, validatorId } = vote;
    const validatorSet = voters.find(register.id, docketNumber);
    const member = validatorSet?.members.find((each) => each.validatorId === validatorId);
    if (member === undefined || !register.rejections.isNew({ docketNumber, docketHash, validatorId })) return;
    if (member.publicKey !== vote.publicKey || !verifyVote(vote, verifier)) reportFault(from, 'attestation');
    else register.rejections.add(docketNumber, vote);
  }
}

/** Whether the sender has signed a conflicting message before. */
function contradicts({ machine }: RegisterChain, message: Message): boolean {
  const round = machine.rules.height === message.height ? machine.rounds.get(message.round) : undefined;
  if (round === undefined) return false;
  const earlier = isProposal(message)
    ? round.proposal
    : votesOf(round, message.kind).get(message.validatorId);
  return earlier?.validatorId === message.validatorId && !agrees(earlier, message);
}

function isProposer({ machine }: RegisterChain, { height, round, validatorId }: Proposal): boolean {
  return proposerOf(machine.rules.members, height, round) === validatorId;
}

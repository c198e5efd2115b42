import { CONSENSUS_TYPES, type ConsensusMessage, quorum } from '#core/ledger/consensus.ts';
import type { Effect, VoteKind } from '../../chain/consensus/messages.ts';
import type { FaultModel } from './fault-model.ts';
import { short } from './trace.ts';
import type { InvariantViolation, ViolationRecorder } from './violations.ts';

type Step = 1 | 2 | 3;

type Position = readonly [height: number, round: number, step: Step];

/** What one member has signed. */
interface SignedPositions {
  /** The highest position. */
  last: Position | undefined;
  /** Signed bytes by position. */
  readonly texts: Map<string, string>;
}

/** A vote without its signature; an empty value is nil. */
export interface Ballot {
  readonly kind: VoteKind;
  readonly height: number;
  readonly round: number;
  readonly value: string;
}

interface Height {
  /** Voters by the vote's name. */
  readonly voters: Map<string, Set<string>>;
  /** Latest precommit for a docket by correct member. */
  readonly locks: Map<string, { readonly round: number; readonly value: string }>;
  /** Values that a quorum may have precommitted in one round. */
  readonly certified: Set<string>;
  decided: string | undefined;
}

export interface InvariantsOptions {
  readonly registerId: string;
  readonly faultModel: FaultModel;
  readonly violations: ViolationRecorder;
  /** The validator set of a height: votes are counted independently of the members. */
  membersAt(height: number): readonly string[];
}

/**
 * Checks what the members of one register sign, decide and hold. Faulty members may have signed anything, so they count as
 * signers of everything: an invariant must not depend on their silence.
 */
export class Invariants {
  readonly #options: InvariantsOptions;
  readonly #signed = new Map<string, SignedPositions>();
  readonly #heights = new Map<number, Height>();
  readonly #states = new Map<number, { readonly digest: string; readonly processName: string }>();

  constructor(options: InvariantsOptions) {
    this.#options = options;
  }

  /** Number of heights that a correct member has decided, from 0 on. */
  get decidedHeight(): number {
    let height = 0;
    while (this.#heights.get(height)?.decided !== undefined) height += 1;
    return height;
  }

  /** A member has signed a message that has not been released yet. */
  signed(validatorId: string, message: ConsensusMessage, bytes: Uint8Array): void {
    if (!this.#options.faultModel.isByzantine(validatorId)) this.#checkPosition(validatorId, message, bytes);
    else if (message.type !== CONSENSUS_TYPES.proposal) {
      const { height, round, type } = message;
      const kind = type === CONSENSUS_TYPES.prevote ? 'prevote' : 'precommit';
      this.voted(validatorId, { kind, height, round, value: votedFor(message) });
    }
  }

  /** A vote is released; a signature that is never released has no effect on the protocol. */
  voted(validatorId: string, ballot: Ballot): void {
    const { height: number, round, kind, value } = ballot;
    const height = this.#height(number);
    const isHonest = !this.#isFaultyAt(validatorId, number);
    if (isHonest && value !== '') this.#checkVote(validatorId, height, ballot);
    const name = nameOf(ballot);
    const voters = height.voters.get(name) ?? new Set();
    height.voters.set(name, voters.add(validatorId));
    if (kind !== 'precommit' || value === '') return;
    const held = height.locks.get(validatorId)?.round ?? -1;
    if (isHonest && round > held) height.locks.set(validatorId, { round, value });
    if (this.#reaches(number, height, name)) this.#certify(number, height, value);
  }

  /** A member decides a height with these precommits. */
  decided(validatorId: string, effect: Extract<Effect, { kind: 'decide' }>): void {
    if (this.#options.faultModel.isByzantine(validatorId)) return;
    const { height: number, value, round, precommits } = effect;
    const height = this.#height(number);
    const name = `${value.hash}${value.merkleRoot}${value.logRoot}`;
    const ballot = { kind: 'precommit', height: number, round, value: name } as const;
    const signers = height.voters.get(nameOf(ballot)) ?? new Set();
    const counted = new Set(precommits.map((vote) => vote.validatorId).filter((each) => signers.has(each)));
    const members = this.#options.membersAt(number);
    const areMembers = [...counted].every((each) => members.includes(each));
    if (!areMembers || counted.size < quorum(members.length) || counted.size !== precommits.length) {
      const processName = precommits.map((vote) => `${vote.validatorId} in round ${vote.round}`).join(', ');
      this.#break(
        'certificate',
        `${validatorId} decides height ${number} in round ${round} with ${processName}`,
      );
    }
    if (height.decided === undefined) height.decided = name;
    else if (height.decided !== name) {
      this.#break(
        'agreement',
        `${validatorId} decides ${short(name)} at height ${number}, others ${short(height.decided)}`,
      );
    }
  }

  /** A docket is in the store. */
  stored(number: number, name: string): void {
    const { decided } = this.#height(number);
    if (decided !== undefined && decided !== name)
      this.#break('agreement', `the store holds ${short(name)} at height ${number}, not ${short(decided)}`);
  }

  /** A member reaches a height with a state. */
  reached(validatorId: string, height: number, digest: string): void {
    const known = this.#states.get(height);
    if (known === undefined) this.#states.set(height, { digest, processName: validatorId });
    else if (known.digest !== digest)
      this.#break(
        'equal state at equal height',
        `${validatorId} and ${known.processName} differ at height ${height}`,
      );
  }

  /** A member holds evidence against another one. */
  accused(validatorId: string, kind: string, accused: string): void {
    const { faultModel } = this.#options;
    if (faultModel.isByzantine(accused) || faultModel.isByzantine(validatorId)) return;
    this.#break('evidence is true', `${validatorId} holds ${kind} against ${accused}`);
  }

  #break(invariant: InvariantViolation['invariant'], message: string): void {
    this.#options.violations.break(invariant, message);
  }

  #isFaultyAt(validatorId: string, height: number): boolean {
    return this.#options.faultModel.isFaultyAt(validatorId, this.#options.registerId, height);
  }

  #height(number: number): Height {
    let height = this.#heights.get(number);
    if (height === undefined) {
      height = { voters: new Map(), locks: new Map(), certified: new Set(), decided: undefined };
      this.#heights.set(number, height);
    }
    return height;
  }

  /** A position is above all earlier ones, or repeats the bytes that were signed there. */
  #checkPosition(validatorId: string, message: ConsensusMessage, bytes: Uint8Array): void {
    const position: Position = [message.height, message.round, message.type];
    const text = Buffer.from(bytes).toString('latin1');
    const signed = this.#signed.get(validatorId) ?? { last: undefined, texts: new Map<string, string>() };
    this.#signed.set(validatorId, signed);
    const { last } = signed;
    const name = position.join('/');
    if (signed.texts.get(name) === text) return;
    if (last !== undefined && !isAbove(position, last)) {
      this.#break('positions of a signer only rise', `${validatorId} signs ${name} after ${last.join('/')}`);
    }
    signed.texts.set(name, text);
    signed.last = position;
  }

  #checkVote(validatorId: string, height: Height, { kind, height: number, round, value }: Ballot): void {
    const polka = (at: number) =>
      this.#reaches(number, height, nameOf({ kind: 'prevote', height: number, round: at, value }));
    const where = `${short(value)} at ${number}/${round}`;
    if (kind === 'precommit') {
      // The prevote of a set of one says nothing that its precommit does not say.
      if (this.#options.membersAt(number).length > 1 && !polka(round)) {
        this.#break(
          'polka before precommit',
          `${validatorId} precommits ${where} without a quorum of prevotes`,
        );
      }
      return;
    }
    const lock = height.locks.get(validatorId);
    if (lock === undefined || lock.value === value || lock.round >= round) return;
    for (let earlier = lock.round; earlier < round; earlier += 1) if (polka(earlier)) return;
    const held = `${short(lock.value)} since round ${lock.round}`;
    this.#break('lock rule', `${validatorId} prevotes ${where}, locked on ${held}`);
  }

  /** Whether a quorum may have cast this vote. */
  #reaches(number: number, height: Height, name: string): boolean {
    const voters = height.voters.get(name);
    const members = this.#options.membersAt(number);
    const may = (each: string) => voters?.has(each) === true || this.#isFaultyAt(each, number);
    return members.filter(may).length >= quorum(members.length);
  }

  #certify(number: number, height: Height, value: string): void {
    height.certified.add(value);
    if (height.certified.size > 1) {
      const values = [...height.certified].map(short).join(' and ');
      this.#break('one certificate for each height', `height ${number} has ${values}`);
    }
  }
}

function nameOf({ kind, round, value }: Ballot): string {
  return `${round}/${kind}/${value}`;
}

function votedFor({ docket }: ConsensusMessage): string {
  return docket === undefined ? '' : `${docket.docketHash}${docket.merkleRoot}${docket.logRoot}`;
}

function isAbove(next: Position, last: Position): boolean {
  for (const [index, part] of next.entries()) {
    const before = last[index] ?? 0;
    if (part !== before) return part > before;
  }
  return false;
}

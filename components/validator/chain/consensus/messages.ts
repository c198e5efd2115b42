/** The facts of a docket that the machine needs: its identity and the proposer's timestamp. */
export interface Value {
  readonly hash: string;
  readonly merkleRoot: string;
  readonly logRoot: string;
  readonly timestamp: string;
}

export interface Proposal {
  readonly kind: 'proposal';
  readonly height: number;
  readonly round: number;
  /** Round whose prevote quorum justifies proposing the value again, -1 for a new value. */
  readonly polRound: number;
  readonly value: Value;
  readonly validatorId: string;
  readonly signature: string;
}

export type VoteKind = 'prevote' | 'precommit';

export interface Vote {
  readonly kind: VoteKind;
  readonly height: number;
  readonly round: number;
  /** Undefined is a vote for nil. */
  readonly value: Omit<Value, 'timestamp'> | undefined;
  readonly timestamp: string;
  readonly validatorId: string;
  readonly signature: string;
}

export type Message = Proposal | Vote;
export type UnsignedProposal = Omit<Proposal, 'signature' | 'validatorId'>;
/** A vote for a docket carries the docket's own timestamp. A nil vote gets its timestamp when it is signed. */
export type UnsignedVote = Omit<Vote, 'signature' | 'validatorId' | 'timestamp'> & {
  readonly timestamp: string | undefined;
};
export type UnsignedMessage = UnsignedProposal | UnsignedVote;

/** A docket that cannot be judged now is `unavailable`, which counts as a nil prevote until it is judged again. */
export type Verdict = 'valid' | 'late' | 'invalid' | 'unavailable';

export type TimedStep = 'propose' | 'prevote' | 'precommit';

export interface Evidence {
  readonly kind: 'duplicate-proposal' | 'duplicate-vote';
  readonly first: Message;
  readonly second: Message;
}

export type Input =
  | { readonly kind: 'work' }
  | { readonly kind: 'built'; readonly round: number; readonly value: Value | undefined }
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'judged'; readonly round: number; readonly hash: string; readonly verdict: Verdict }
  /** A decision of other members, fetched from one of them. The caller has verified its certificate. */
  | {
      readonly kind: 'committed';
      readonly height: number;
      readonly round: number;
      readonly value: Value;
      readonly precommits: readonly Vote[];
    }
  | { readonly kind: 'refused'; readonly round: number; readonly message: Message['kind'] }
  | { readonly kind: 'timeout'; readonly height: number; readonly round: number; readonly step: TimedStep };

export type Effect =
  | { readonly kind: 'build'; readonly height: number; readonly round: number }
  | { readonly kind: 'judge'; readonly proposal: Proposal }
  | { readonly kind: 'sign'; readonly message: UnsignedMessage }
  | {
      readonly kind: 'schedule';
      readonly height: number;
      readonly round: number;
      readonly step: TimedStep;
      readonly afterMs: number;
    }
  | {
      readonly kind: 'decide';
      readonly height: number;
      readonly round: number;
      readonly value: Value;
      /** The precommits for the value, ordered by validator. */
      readonly precommits: readonly Vote[];
    }
  | { readonly kind: 'evidence'; readonly evidence: Evidence }
  /** Another member has decided this height or a later one: request the committed docket from it. */
  | { readonly kind: 'behind'; readonly height: number; readonly validatorId: string };

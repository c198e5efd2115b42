/** What is asked about a transaction. */
export interface LookupQuery {
  readonly registerId: string;
  readonly transactionId: string;
  readonly previousTransactionId: string;
  /** Replay protection key of an Action; empty to skip the check. */
  readonly replayKey: string;
  /** The publication that a step names; empty to skip the check. */
  readonly pin: string;
}

/** What the sealed past says about a transaction. */
export interface LookupAnswer {
  /** Lower hex of the record's leaf when the transaction is sealed, else empty. */
  readonly sealedRecordHash: string;
  readonly previousKnown: boolean;
  readonly previousType: string;
  readonly previousSuccessor: string;
  /** The sealed transaction with the replay key, else empty. */
  readonly sealedReplay: string;
  /** `routing` of a predecessor that is a step, else empty. */
  readonly previousRouting: string;
  /** Whether `pin` is a stored publication. */
  readonly pinKnown: boolean;
}

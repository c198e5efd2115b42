/** How much the rows of workflows and of ways in do. */
export interface Lengths {
  /** Rounds that count, of ours and of the raw program by turns. */
  readonly rounds: number;
  /** Rounds before them. */
  readonly warmUp: number;
  /** Instances of a round with four actions each, and of one with the first action alone. */
  readonly instances: number;
  readonly starts: number;
  /** Plain transactions of a round. */
  readonly transactions: number;
  /** Single steps of the latency row; the first half is not counted. */
  readonly samples: number;
  /** Requests of a round to the helper, and for disclosures. */
  readonly helperRequests: number;
  readonly disclosures: number;
  /** Instances with four steps each of the register that is folded anew. */
  readonly folded: number;
  /** Instances of the load row. */
  readonly load: number;
  /** Sign-ins of a round, and people with an authenticator app, who sign in once a round. */
  readonly signIns: number;
  readonly people: number;
  /** Credentials, or presentations, of a round. */
  readonly credentials: number;
}

/** Figures worth comparing. */
export const full: Lengths = {
  rounds: 5,
  warmUp: 2,
  instances: 64,
  starts: 128,
  transactions: 1_500,
  samples: 80,
  helperRequests: 2_000,
  disclosures: 160,
  folded: 500,
  load: 50,
  signIns: 200,
  people: 40,
  credentials: 300,
};

/** Shows that the rows work; their figures say nothing. */
export const few: Lengths = {
  rounds: 1,
  warmUp: 0,
  instances: 3,
  starts: 4,
  transactions: 50,
  samples: 4,
  helperRequests: 20,
  disclosures: 4,
  folded: 3,
  load: 4,
  signIns: 8,
  people: 3,
  credentials: 10,
};

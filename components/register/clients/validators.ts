import type { AppError } from '#core/errors/errors.ts';
import type { DocketBundle } from '../ledger/dockets/docket.ts';

/** Address of a validator, and the identity that it must prove. */
export interface ValidatorAddress {
  readonly validatorId: string;
  /** host:port; empty until the validator has announced itself */
  readonly endpoint: string;
}

export interface SubmitAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfterSeconds: number;
}

export interface UnsealedTransaction {
  readonly txId: string;
  readonly status: 'pending' | 'rejected' | 'expired';
  /** JCS bytes; empty unless pending */
  readonly record: Uint8Array;
  readonly rejectionCode: string;
  readonly rejectionMessage: string;
  readonly atMs: number;
}

export type SealResult =
  | { readonly outcome: 'sealed'; readonly docketNumber: number }
  | { readonly outcome: 'nothing_pending' | 'no_quorum' | 'timeout' };

export interface Possession {
  readonly validatorId: string;
  readonly publicKey: string;
  readonly algorithm: string;
  readonly signature: Uint8Array;
}

/** One validator's view of itself, of a register and of its peers. */
export interface ValidatorView {
  readonly validatorId: string;
  readonly version: string;
  /** the docket that is being decided, as far as this validator knows */
  readonly height: number;
  readonly round: number;
  /** empty while the proposer is unknown */
  readonly proposer: string;
  readonly heard: readonly { readonly validatorId: string; readonly heardAtMs: number }[];
  /** undefined when it does not validate the register */
  readonly register: RegisterView | undefined;
}

/** A register as one of its validators sees it. */
export interface RegisterView {
  /** Running, Paused, Stopped, Halted, WaitingForValidators */
  readonly status: string;
  /** reason of a halt or of a pause by the validator itself; empty otherwise */
  readonly reason: string;
  readonly pending: number;
  readonly evidence: readonly EvidenceView[];
}

/** Summary of proven faults of members. */
export interface EvidenceView {
  readonly kind: string;
  readonly validatorIds: readonly string[];
  readonly height: number;
  readonly seenAtMs: number;
}

/** Operator actions on the validation of a register. */
export type ValidationAct = 'start' | 'stop' | 'pause' | 'resume';

/** A C2SP cosignature of a checkpoint: seconds since the epoch, which are part of the signed text, and 64 bytes. */
export interface Cosignature {
  readonly timeSeconds: number;
  readonly signature: Uint8Array;
}

/** A validator, as this component uses it. Outages are AppErrors of kind unavailable or timeout. */
export interface Validators {
  submit(at: ValidatorAddress, submission: Uint8Array): Promise<SubmitAnswer>;
  find(
    at: ValidatorAddress,
    registerId: string,
    txIds: readonly string[],
  ): Promise<readonly UnsealedTransaction[]>;
  listPending(
    at: ValidatorAddress,
    registerId: string,
    limit: number,
  ): Promise<{ readonly items: readonly UnsealedTransaction[]; readonly total: number }>;
  seal(
    at: ValidatorAddress,
    request: { readonly registerId: string; readonly maxTransactions: number; readonly timeoutMs: number },
  ): Promise<SealResult>;
  /**
   * The newest key of a validator with a proof of possession for one register.
   * @param after requests the key that follows this one, which the validator creates if needed: the key to rotate to
   */
  provePossession(at: ValidatorAddress, registerId: string, after?: string): Promise<Possession>;
  /** A C2SP cosignature of the register's checkpoint at a size that the validator knows. */
  cosign(
    at: ValidatorAddress,
    request: { readonly registerId: string; readonly size: number; readonly rootHash: Uint8Array },
  ): Promise<Cosignature>;
  /** The validator's heartbeats and its state of the register. */
  view(at: ValidatorAddress, registerId: string): Promise<ValidatorView>;
  /** Stored height of each register, by register id, as the validator last knew it. */
  heights(at: ValidatorAddress): Promise<ReadonlyMap<string, number>>;
  /**
   * Dockets of a register from a number on, in order, as far as the validator's log has them. The caller must verify
   * them.
   */
  readDockets(
    at: ValidatorAddress,
    range: { readonly registerId: string; readonly from: number; readonly signal: AbortSignal },
  ): AsyncIterable<DocketBundle>;
  /** Starts, stops, pauses or resumes validation of the register on this validator; returns the resulting state. */
  act(at: ValidatorAddress, registerId: string, act: ValidationAct): Promise<{ readonly status: string }>;
}

/** Whether another validator may be able to answer: this one was unreachable or sent an unusable answer. */
export function isOutage(error: AppError): boolean {
  return error.kind === 'unavailable' || error.kind === 'timeout' || error.kind === 'bad_gateway';
}

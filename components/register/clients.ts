import type { AppError } from '#core/errors/errors.ts';
import type { DocketBundle } from './dockets/docket.ts';

/** A key of the wallet service. `publicKey` is standard base64 in the form of D3. */
export interface WalletKey {
  readonly publicKey: string;
  readonly algorithm: string;
  readonly walletAddress: string;
}

/** The key that attests for a wallet of the wallet service in a roster. */
export interface AttestationKey {
  /** id or address, as it was asked for */
  readonly wallet: string;
  readonly walletAddress: string;
  /** empty for the wallet's own key */
  readonly derivationContext: string;
  readonly keyAddress: string;
}

export interface Signed {
  readonly signature: Uint8Array;
  readonly key: WalletKey;
}

export interface DigestRequest {
  readonly walletAddress: string;
  readonly digest: Uint8Array;
  /** empty for the primary key */
  readonly derivationContext: string;
  readonly subjectToken: string;
}

export interface ControlRequest {
  readonly registerId: string;
  readonly transactionId: string;
  readonly payloadHash: string;
  readonly transactionType: string;
}

export interface OwnershipRequest {
  readonly registerId: string;
  readonly registerName: string;
  readonly grantedAt: string;
}

/** What this component asks of the wallet service. Refusals and outages are AppErrors. */
export interface Wallets {
  findKey(walletAddress: string): Promise<WalletKey | undefined>;
  subjectWallets(subjectToken: string): Promise<readonly WalletKey[]>;
  /** By wallet id or address; wallets that the service does not know are left out. */
  attestationKeys(wallets: readonly string[]): Promise<readonly AttestationKey[]>;
  organizationWallet(organizationId: string): Promise<WalletKey | undefined>;
  signDigest(request: DigestRequest): Promise<Signed>;
  /** The register-control key of the installation. */
  systemKey(): Promise<WalletKey>;
  signControl(request: ControlRequest): Promise<Signed>;
  /** The installation takes the role of the owner of a register that is about to begin. */
  signOwnership(request: OwnershipRequest): Promise<Signed>;
  signCheckpoint(registerId: string, body: string): Promise<Signed>;
}

/** Where a validator listens, and which identity it must prove. */
export interface ValidatorAddress {
  readonly validatorId: string;
  /** host:port; empty while the validator has never announced itself */
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

/** What one validator says of itself, of a register and of the others. */
export interface ValidatorView {
  readonly validatorId: string;
  readonly version: string;
  /** the docket that is being decided, by this validator's knowledge */
  readonly height: number;
  readonly round: number;
  /** empty while nobody's turn is known */
  readonly proposer: string;
  readonly heard: readonly { readonly validatorId: string; readonly heardAtMs: number }[];
  /** undefined when it does not validate the register */
  readonly register: RegisterView | undefined;
}

/** A register as one of its validators sees it. */
export interface RegisterView {
  /** Running, Paused, Stopped, Halted, WaitingForValidators */
  readonly status: string;
  /** why it is halted, or paused by itself; empty otherwise */
  readonly reason: string;
  readonly pending: number;
  readonly evidence: readonly EvidenceView[];
}

/** Proven faults of members, in short. */
export interface EvidenceView {
  readonly kind: string;
  readonly validatorIds: readonly string[];
  readonly height: number;
  readonly seenAtMs: number;
}

/** What a validator may be told to do with a register. */
export type ValidationAct = 'start' | 'stop' | 'pause' | 'resume';

/** What this component asks of one validator; an outage is an AppError of kind unavailable or timeout. */
export interface Cosignature {
  readonly timeSeconds: number;
  readonly signature: Uint8Array;
}

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
   * The newest key of a validator and the proof that it holds it, for one register.
   * @param after the proof is for the key that follows this one, which is made when there is none: to rotate to
   */
  provePossession(at: ValidatorAddress, registerId: string, after?: string): Promise<Possession>;
  /** A C2SP cosignature of the register's checkpoint at a size that the validator knows. */
  cosign(
    at: ValidatorAddress,
    request: { readonly registerId: string; readonly size: number; readonly rootHash: Uint8Array },
  ): Promise<Cosignature>;
  /** Heartbeats as this validator has them (D24). */
  view(at: ValidatorAddress, registerId: string): Promise<ValidatorView>;
  /** How many dockets of each register this service was known to hold, by register id. */
  heights(at: ValidatorAddress): Promise<ReadonlyMap<string, number>>;
  /** Dockets of a register from a number on, in order, as far as the validator's log holds them; nothing is verified. */
  readDockets(
    at: ValidatorAddress,
    range: { readonly registerId: string; readonly from: number; readonly signal: AbortSignal },
  ): AsyncIterable<DocketBundle>;
  /** Starts, stops, pauses or resumes it there; what it comes to. */
  act(at: ValidatorAddress, registerId: string, act: ValidationAct): Promise<{ readonly status: string }>;
}

/** Whether another validator may answer what this one did not, or answered with nonsense. */
export function isOutage(error: AppError): boolean {
  return error.kind === 'unavailable' || error.kind === 'timeout' || error.kind === 'bad_gateway';
}

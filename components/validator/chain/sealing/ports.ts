import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { ConsensusMessage } from '#core/ledger/consensus.ts';
import type { Docket } from '../building/docket.ts';
import type { KeyPart } from '../keys/key-snapshot.ts';
import type { LookupAnswer, LookupQuery } from '../keys/lookup.ts';
import type { StateFacts } from '../state/state.ts';

/** The public part of the key that signs for the validator; the signing component holds the private key. */
export interface SignerKey {
  /** Standard base64 of 32 raw bytes; validators' keys are Ed25519. */
  readonly publicKey: string;
  readonly walletAddress: string;
}

/** The vote of the specification about a docket. */
export interface AttestationRequest {
  readonly kind: 'attestation';
  readonly registerId: string;
  readonly docketHash: string;
  readonly approved: boolean;
  readonly timestamp: string;
}

/** Requests to the signing component. */
export type SignerRequest =
  | { readonly kind: 'consensus'; readonly message: ConsensusMessage }
  | AttestationRequest
  | {
      readonly kind: 'cosignature';
      readonly networkId: string;
      readonly registerId: string;
      readonly size: number;
      readonly rootHash: Uint8Array;
      readonly timeSeconds: number;
    }
  | { readonly kind: 'possession'; readonly registerId: string }
  /** Canonical JSON of a proposal to suspend another validator; the signature becomes that of its transaction. */
  | { readonly kind: 'suspension'; readonly registerId: string; readonly payload: Uint8Array };

/** Messages about one docket in one round of a height, by rising type, and the attestation of the docket. */
export interface SignerBatch {
  readonly messages: readonly ConsensusMessage[];
  readonly attestation?: AttestationRequest | undefined;
}

/** The signatures of a batch; those of the messages in their order. */
export interface BatchSignatures {
  readonly messages: readonly Uint8Array[];
  readonly attestation?: Uint8Array | undefined;
}

export interface Signer {
  /** Whether the signing component signs batches; that of an earlier version does not. */
  readonly signsBatches: boolean;
  /** The first key of the identity; a register may have rotated to a later one (signerIn). */
  readonly key: SignerKey;
  /**
   * Waits while the signing component is unreachable.
   * @param publicKey the key of the identity that signs; the first one when absent
   * @throws AppError conflict DOUBLE_SIGN_REFUSED, forbidden SIGNER_FENCED or SIGNING_NOT_ALLOWED, not_found
   * SIGNING_KEY_UNKNOWN, unavailable when the validator stops
   */
  sign(request: SignerRequest, publicKey?: string): Promise<Uint8Array>;
  /**
   * Signs all messages of a batch or none. A batch that is repeated gets the same signatures. Waits and throws like `sign`,
   * and AppError invalid INVALID_REQUEST when the component does not sign batches.
   */
  signBatch(batch: SignerBatch, publicKey?: string): Promise<BatchSignatures>;
}

/** Further keys of an identity. */
export interface KeyChain {
  /** The latest key. */
  readonly newestKey: SignerKey;
  /** The key after a given one, created on first use. Throws like sign, and conflict SIGNING_KEYS_EXHAUSTED. */
  nextKey(after: string): Promise<SignerKey>;
}

export interface SealedDocket {
  readonly docket: Docket;
  readonly certificate: Certificate;
}

export type WriteOutcome = 'stored' | 'replayed' | 'divergent' | 'out-of-order' | 'invalid';

export interface WriteAnswer {
  readonly outcome: WriteOutcome;
  readonly height: number;
  readonly refusals: readonly string[];
}

/** A transaction as the register service stored it. */
interface StoredTransaction {
  readonly record: Uint8Array;
  readonly payload: Uint8Array;
}

/** The register service as a validator sees it. Every call throws AppError when the service is unavailable. */
export interface Ledger {
  lookup(queries: readonly LookupQuery[]): Promise<readonly LookupAnswer[]>;
  writeDocket(sealed: SealedDocket, attestations: readonly ConsensusVote[]): Promise<WriteAnswer>;
  /** Adds one attestation to a stored docket. Idempotent. */
  appendAttestation(registerId: string, docketNumber: number, vote: ConsensusVote): Promise<void>;
  /** Undefined when the register service does not know the register or holds no docket of it. */
  findRegister(registerId: string): Promise<RegisterFacts | undefined>;
  listMemberRegisters(): Promise<readonly string[]>;
  isSubscribed(organizationId: string, registerId: string): Promise<boolean>;
  /** A stored transaction; undefined when there is none with the id. */
  findTransaction(registerId: string, txId: string): Promise<StoredTransaction | undefined>;
  /** The keys of all stored dockets; throws AppError while it is read. */
  readKeys(registerId: string, signal: AbortSignal): AsyncIterable<KeyPart>;
}

export interface RegisterFacts extends StateFacts {
  readonly status: string;
  /** Number of transactions in the stored dockets; undefined from a register service of an earlier version. */
  readonly transactionCount?: number | undefined;
}

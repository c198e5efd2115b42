import type { Clock } from '#kit/clock/clock.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { LogRecord } from '../../chain/records/entries.ts';
import type { AdmissionEpochs } from '../../chain/sealing/admission-epochs.ts';
import type { Ledger } from '../../chain/sealing/ports.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { Genesis } from '../../chain/state/genesis.ts';
import type { SealedLookup } from '../lookup/sealed-lookup.ts';
import type { SubscriptionCheck } from './subscriptions.ts';

/** What the admission of submissions calls. */
export interface AdmissionOptions {
  readonly clock: Clock;
  readonly ledger: Pick<Ledger, 'findRegister'>;
  readonly lookup: Pick<SealedLookup, 'certain' | 'ask'>;
  readonly epochs: AdmissionEpochs;
  verify(items: readonly VerifyItem[]): Promise<readonly boolean[]>;
  append(...records: LogRecord[]): Promise<number>;
  /** Runs the callback once all messages that have arrived are queued. */
  defer(act: () => void): void;
  /** A register that this validator has already loaded. */
  getRegister(registerId: string): RegisterChain | undefined;
  /** Undefined when this validator has no such register. */
  findRegister(registerId: string): Promise<RegisterChain | undefined>;
  /** `algorithm:publicKey` of the installation's register-control key. */
  systemKey(): Promise<string>;
  /** Begins a register from its genesis transaction, or returns the register that has begun. */
  beginRegister(registerId: string, genesis: Genesis): Promise<RegisterChain>;
  /** Called once transactions are verified and their write has been requested. */
  accepted(registerId: string, transactions: readonly PooledTransaction[]): void;
  readonly subscriptions: SubscriptionCheck;
  submissionAnswered(outcome: string): void;
  /** Throws AppError unavailable once this validator has stopped sealing, and while the disk is full. */
  assertWorking(): void;
  /** Throws AppError unavailable VALIDATOR_DRAINING while this validator drains. */
  assertAccepting(): void;
  /** Resolves with the write, or rejects with AppError unavailable VALIDATOR_PAUSED as soon as the write must wait for disk space. */
  unlessFull<T>(writing: Promise<T>): Promise<T>;
}

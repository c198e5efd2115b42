import type { PoolBounds } from '../pool/pool.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { AdmissionEpochs } from './admission-epochs.ts';
import type { BuildLimits } from './block-interval.ts';
import type { ConsensusDriverOptions } from './consensus-driver.ts';
import type { Ledger } from './ports.ts';
import type { CapacityStatus } from './status.ts';

export interface RegisterOptions
  extends CapacityStatus,
    Omit<
      ConsensusDriverOptions,
      'build' | 'draftAttestation' | 'judge' | 'onDecided' | 'onEvidence' | 'onFailed' | 'onInvalid'
    > {
  readonly ledger: Ledger;
  readonly epochs: AdmissionEpochs;
  readonly bounds: PoolBounds;
  readonly buildLimits: BuildLimits;
  readonly metrics: SealingMetrics;
  /** False only in the proof that the simulator notices incomplete keys. */
  readonly areKeysGated?: boolean | undefined;
  /** JSON text of docket 0's configuration, from its transaction. */
  genesisConfig(genesis: PooledTransaction): string;
  onFailed(error: unknown): void;
}

export interface SealingMetrics {
  decided(transactions: number, rounds: number): void;
  stored(transactions: number): void;
}

import type { Verifier } from '#core/crypto/verify.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';
import type { PeerEvidence } from '../../chain/consensus/evidence.ts';
import type { LogRecord } from '../../chain/records/entries.ts';
import type { RegisterTable } from '../../chain/registers/register-table.ts';
import type { Registers } from '../../chain/registers/registers.ts';
import type { AdmissionEpochs } from '../../chain/sealing/admission-epochs.ts';
import type { Admission } from '../../intake/admission/admission.ts';
import type { PeerVerificationOptions } from '../../intake/verification/verify-peer-transactions.ts';
import type { Transport } from '../transport/transport.ts';

export interface PeeringOptions extends PeerVerificationOptions {
  readonly self: string;
  readonly version: string;
  readonly transport: Transport;
  readonly verifier: Verifier;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly epochs: AdmissionEpochs;
  readonly log: Logger;
  readonly metrics: PeeringMetrics;
  readonly registers: Pick<RegisterTable, 'get' | 'all'>;
  append(...records: LogRecord[]): Promise<number>;
  /** Whether this validator is draining. */
  isDraining(): boolean;
}

/** Parts that are built on peering and that it calls. */
export interface PeeringHandlers {
  readonly registers: Pick<Registers, 'find' | 'fastForward'>;
  readonly admission: Pick<Admission, 'submitAnnounced' | 'settled'>;
  /** Called when evidence of a register is held, so that a suspension can be proposed. */
  proposeSuspension(registerId: string): void;
}

export interface PeeringMetrics {
  /** Newly proven conflicting messages. */
  equivocation(kind: PeerEvidence['kind']): void;
  /** A peer sent a message that a correct validator would not send. */
  peerFault(reason: string): void;
}

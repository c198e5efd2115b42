import type { AppError } from '#core/errors/errors.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { failure } from '../../errors.ts';
import type { Mode } from '../records/entries.ts';

/** Full: paused by itself until the volume of the log has space. */
export type RegisterStatus = Mode | 'Halted' | 'Full';

/** Whether a validator can accept work and propose. */
export interface CapacityStatus {
  /** The volume of the log is full. */
  isFull(): boolean;
  /** Proposing is left to the other members. */
  isDraining(): boolean;
}

export function statusOf(mode: Mode, isHalted: boolean, isFull: boolean): RegisterStatus {
  if (isHalted) return 'Halted';
  return isFull && mode !== 'Stopped' ? 'Full' : mode;
}

/** Whether a register accepts no dockets, not even decided ones: it is halted, or the disk is too full to log them. */
export function isInactive({ status }: { readonly status: RegisterStatus }): boolean {
  return status === 'Halted' || status === 'Full';
}

export interface SealResult {
  readonly outcome: 'sealed' | 'nothing-pending' | 'not-running' | 'timeout';
  readonly docketNumber: number;
  /** Header of the sealed docket. */
  readonly header?: DocketHeader | undefined;
}

/** The refusal of a register that is not open. */
export function notReady(registerId: string, status: RegisterStatus): AppError {
  return failure('REGISTER_NOT_READY', {
    message: `Register ${registerId} is ${status}`,
    retryAfterSeconds: 5,
  });
}

import { AppError } from '#core/errors/errors.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Mode } from '../log/entries.ts';

/** Full: paused by itself, until there is room on the volume of the log. */
export type RegisterStatus = Mode | 'Halted' | 'Full';

/** Whether a validator can take in what comes, and whether it takes its turns. */
export interface Room {
  /** The volume of the log has no room. */
  isFull(): boolean;
  /** Proposing is left to the others. */
  isDraining(): boolean;
}

export function statusOf(mode: Mode, isHalted: boolean, isFull: boolean): RegisterStatus {
  if (isHalted) return 'Halted';
  return isFull && mode !== 'Stopped' ? 'Full' : mode;
}

/** Whether a register takes no dockets in, whoever decided them: it has halted, or they could not be remembered. */
export function isStill({ status }: { readonly status: RegisterStatus }): boolean {
  return status === 'Halted' || status === 'Full';
}

export interface SealResult {
  readonly outcome: 'sealed' | 'nothing-pending' | 'not-running' | 'timeout';
  readonly docketNumber: number;
  /** Of the docket that was sealed. */
  readonly header?: DocketHeader | undefined;
}

/** Refuses what a register that is not open cannot take. */
export function notReady(registerId: string, status: RegisterStatus): AppError {
  return new AppError('unavailable', 'REGISTER_NOT_READY', `Register ${registerId} is ${status}`, {
    retryAfterSeconds: 5,
  });
}

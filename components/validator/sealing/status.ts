import { AppError } from '#core/errors/errors.ts';
import type { Mode } from '../log/entries.ts';

export type RegisterStatus = Mode | 'Halted';

export interface SealResult {
  readonly outcome: 'sealed' | 'nothing-pending' | 'not-running' | 'timeout';
  readonly docketNumber: number;
}

/** Refuses what a register that is not open cannot take. */
export function notReady(registerId: string, status: RegisterStatus): AppError {
  return new AppError('unavailable', 'REGISTER_NOT_READY', `Register ${registerId} is ${status}`, {
    retryAfterSeconds: 5,
  });
}

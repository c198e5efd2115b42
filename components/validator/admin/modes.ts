import { AppError } from '#core/errors/errors.ts';
import type { Mode } from '../log/entries.ts';
import type { RegisterStatus } from '../sealing/register.ts';

export const acts = ['start', 'stop', 'pause', 'resume'] as const;
export type Act = (typeof acts)[number];

const targets: Readonly<Record<Act, Mode>> = {
  start: 'Running',
  stop: 'Stopped',
  pause: 'Paused',
  resume: 'Running',
};

/**
 * The mode an act leads to (L-75). Repeating an act changes nothing; a stopped register is started, not resumed, and not
 * paused. Throws AppError conflict for what the mode does not allow.
 */
export function nextMode(status: RegisterStatus, act: Act): Mode {
  if (status === 'Halted') {
    throw new AppError('conflict', 'REGISTER_HALTED', 'The register is halted and needs an operator');
  }
  if (status === 'Stopped' && (act === 'resume' || act === 'pause')) {
    throw new AppError(
      'conflict',
      'VALIDATION_STOPPED',
      'Validation of the register is stopped; start it first',
    );
  }
  return targets[act];
}

/**
 * Whether stopping this member would leave a set of several without its quorum. A set of one is stopped by its only member:
 * that is what the act means there.
 */
export function breaksQuorum(size: number, quorum: number): boolean {
  return size > 1 && size - 1 < quorum;
}

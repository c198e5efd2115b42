import { AppError } from '#core/errors/errors.ts';
import type { Mode } from '../log/entries.ts';
import type { RegisterStatus } from '../sealing/status.ts';

export const acts = ['start', 'stop', 'pause', 'resume'] as const;
export type Act = (typeof acts)[number];

/** Where each act leads. */
export const targets: Readonly<Record<Act, Mode>> = {
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

/** Whether a text names an act. */
export function isAct(text: string): text is Act {
  return acts.some((act) => act === text);
}

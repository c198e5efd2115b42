import { failure } from '../../errors.ts';
import type { Mode } from '../records/entries.ts';
import type { RegisterStatus } from './status.ts';

export const modeCommands = ['start', 'stop', 'pause', 'resume'] as const;
export type ModeCommand = (typeof modeCommands)[number];

/** The mode that each command leads to. */
export const targetModes: Readonly<Record<ModeCommand, Mode>> = {
  start: 'Running',
  stop: 'Stopped',
  pause: 'Paused',
  resume: 'Running',
};

/**
 * The mode that a command leads to. Repeating a command changes nothing. A stopped register must be started; it can be
 * neither resumed nor paused. Throws AppError conflict for a command that the mode does not allow.
 */
export function nextMode(status: RegisterStatus, act: ModeCommand): Mode {
  if (status === 'Halted') {
    throw failure('REGISTER_HALTED');
  }
  if (status === 'Stopped' && (act === 'resume' || act === 'pause')) {
    throw failure('VALIDATION_STOPPED');
  }
  return targetModes[act];
}

export interface ModeOutcome {
  readonly status: string;
  /** False when the register had that status already. */
  readonly changed: boolean;
}

/** Whether a text is a mode command. */
export function isModeCommand(text: string): text is ModeCommand {
  return modeCommands.some((act) => act === text);
}

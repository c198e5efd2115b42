import { isAppError } from '#core/errors/errors.ts';
import type { ValidationAct, ValidatorAddress, Validators } from '../../clients/validators.ts';
import { refusal } from '../../errors.ts';
import type { FindMembers } from '../directory/ask.ts';
import type { Register } from '../state/store.ts';

export interface ValidationDeps {
  readonly findMembers: FindMembers;
  readonly validators: Pick<Validators, 'act'>;
}

export const VALIDATION_STATES = ['Running', 'Paused', 'Stopped'] as const;
type ValidationState = (typeof VALIDATION_STATES)[number];

/** The actions that lead to a state from any other: a stopped register is started before it is paused. */
const actionsTo: Readonly<Record<ValidationState, readonly ValidationAct[]>> = {
  Running: ['start'],
  Paused: ['start', 'pause'],
  Stopped: ['stop'],
};

/** Whether a member reached the state; false when it is unreachable. Throws its refusals. */
async function bringToState(
  deps: ValidationDeps,
  at: ValidatorAddress,
  registerId: string,
  state: ValidationState,
): Promise<boolean> {
  if (at.endpoint === '') return false;
  try {
    if (state === 'Paused') {
      const { status } = await deps.validators.act(at, registerId, 'pause').catch((error: unknown) => {
        if (isAppError(error) && error.code === 'VALIDATION_STOPPED') return { status: 'Stopped' };
        throw error;
      });
      if (status !== 'Stopped') return true;
    }
    for (const act of actionsTo[state]) await deps.validators.act(at, registerId, act);
    return true;
  } catch (error) {
    if (isAppError(error, 'unavailable') || isAppError(error, 'timeout')) return false;
    throw error;
  }
}

/**
 * Brings every member of a register to a state; idempotent. Returns the unreachable members.
 * @throws AppError unavailable VALIDATOR_UNAVAILABLE when none can be reached, conflict REGISTER_HALTED
 */
export async function setValidation(
  deps: ValidationDeps,
  { registerNo, registerId }: Pick<Register, 'registerNo' | 'registerId'>,
  state: ValidationState,
) {
  const members = await deps.findMembers(registerNo);
  const led = await Promise.all(members.map((member) => bringToState(deps, member, registerId, state)));
  const failed = members.filter((_, index) => !led[index]).map(({ validatorId }) => validatorId);
  if (failed.length === members.length) throw refusal('VALIDATOR_UNAVAILABLE', { retryAfterSeconds: 1 });
  return {
    registerId,
    validation: state,
    reachable: members.length - failed.length,
    failed: failed.toSorted(),
  };
}

import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { isOutage, type ValidatorAddress, type Validators } from '../../clients/validators.ts';

/** Records which validators recently failed to answer, so that they are called last. */
export interface Outages {
  /** The same validators; the outcome of each call is recorded. */
  watch(validators: Validators): Validators;
  /** Members in the order in which to call them: in the given order, recently unreachable ones last. */
  order(members: readonly ValidatorAddress[]): readonly ValidatorAddress[];
}

/** An unreachable validator is called last for this long; it is still called when no other one answers. */
const avoidMs = 10_000;

export function createOutages(clock: Clock): Outages {
  const missedAtMs = new Map<string, number>();

  const isShunned = ({ validatorId }: ValidatorAddress): boolean =>
    clock.nowMs() - (missedAtMs.get(validatorId) ?? Number.NEGATIVE_INFINITY) < avoidMs;

  async function recordOutcome<T>(at: ValidatorAddress, ask: () => Promise<T>): Promise<T> {
    try {
      const answer = await ask();
      missedAtMs.delete(at.validatorId);
      return answer;
    } catch (error) {
      if (isAppError(error) && isOutage(error)) missedAtMs.set(at.validatorId, clock.nowMs());
      throw error;
    }
  }

  return {
    watch: (validators) => ({
      submit: (at, submission) => recordOutcome(at, () => validators.submit(at, submission)),
      find: (at, registerId, txIds) => recordOutcome(at, () => validators.find(at, registerId, txIds)),
      listPending: (at, registerId, limit) =>
        recordOutcome(at, () => validators.listPending(at, registerId, limit)),
      seal: (at, request) => recordOutcome(at, () => validators.seal(at, request)),
      cosign: (at, request) => recordOutcome(at, () => validators.cosign(at, request)),
      provePossession: (at, registerId, after) =>
        recordOutcome(at, () => validators.provePossession(at, registerId, after)),
      view: (at, registerId) => recordOutcome(at, () => validators.view(at, registerId)),
      heights: (at) => recordOutcome(at, () => validators.heights(at)),
      readDockets: (at, range) => validators.readDockets(at, range),
      act: (at, registerId, act) => recordOutcome(at, () => validators.act(at, registerId, act)),
    }),
    order: (members) => {
      if (missedAtMs.size === 0) return members;
      return [...members.filter((one) => !isShunned(one)), ...members.filter(isShunned)];
    },
  };
}

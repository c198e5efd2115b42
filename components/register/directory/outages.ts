import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { isOutage, type ValidatorAddress, type Validators } from '../clients.ts';

/** Remembers which validators did not answer lately, so that they are asked last. */
export interface Outages {
  /** The same validators; what becomes of each call is remembered. */
  watch(validators: Validators): Validators;
  /** Members in the order they should be asked: as they come, those that did not answer lately at the end. */
  order(members: readonly ValidatorAddress[]): readonly ValidatorAddress[];
}

/** One that did not answer is asked last for so long; when nobody else answers it is asked all the same. */
const shunnedMs = 10_000;

export function createOutages(clock: Clock): Outages {
  const missedAtMs = new Map<string, number>();

  const isShunned = ({ validatorId }: ValidatorAddress): boolean =>
    clock.nowMs() - (missedAtMs.get(validatorId) ?? Number.NEGATIVE_INFINITY) < shunnedMs;

  async function noting<T>(at: ValidatorAddress, ask: () => Promise<T>): Promise<T> {
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
      submit: (at, submission) => noting(at, () => validators.submit(at, submission)),
      find: (at, registerId, txIds) => noting(at, () => validators.find(at, registerId, txIds)),
      listPending: (at, registerId, limit) => noting(at, () => validators.listPending(at, registerId, limit)),
      seal: (at, request) => noting(at, () => validators.seal(at, request)),
      cosign: (at, request) => noting(at, () => validators.cosign(at, request)),
      provePossession: (at, registerId, after) =>
        noting(at, () => validators.provePossession(at, registerId, after)),
      view: (at, registerId) => noting(at, () => validators.view(at, registerId)),
      heights: (at) => noting(at, () => validators.heights(at)),
      readDockets: (at, range) => validators.readDockets(at, range),
      act: (at, registerId, act) => noting(at, () => validators.act(at, registerId, act)),
    }),
    order: (members) => {
      if (missedAtMs.size === 0) return members;
      return [...members.filter((one) => !isShunned(one)), ...members.filter(isShunned)];
    },
  };
}

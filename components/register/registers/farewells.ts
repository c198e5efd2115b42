import { setTimeout as rest } from 'node:timers/promises';
import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { isOutage, type ValidatorAddress, type Validators } from '../clients.ts';

export interface FarewellDeps {
  readonly validators: Pick<Validators, 'act'>;
  readonly log: Logger;
  /** Pauses between two attempts, milliseconds; they double from the first to the last. */
  readonly retryMs?: { readonly first: number; readonly last: number };
}

/** Tells validators of deleted registers. */
export interface Farewells {
  /**
   * Has each of them stop the register: again and again for about an hour, until it answers or this process ends. Who
   * starts meanwhile does not take it up.
   */
  tell(registerId: string, members: readonly ValidatorAddress[]): void;
  stop(): Promise<void>;
}

const usualRetryMs = { first: 1_000, last: 30_000 };
/** About an hour: who is silent for so long was most likely started anew, or will be. */
const mostAttempts = 120;

/** Nobody is told any more once it is stopped. */
export function createFarewells({ validators, log, retryMs = usualRetryMs }: FarewellDeps): Farewells {
  const ending = new AbortController();
  const { signal } = ending;
  const underWay = new Set<Promise<void>>();

  /** Whether there is nothing left to say. */
  async function bid(at: ValidatorAddress, registerId: string): Promise<boolean> {
    try {
      await validators.act(at, registerId, 'stop');
      return true;
    } catch (error) {
      const reason = isAppError(error) ? error.code : String(error);
      log.warn(
        { registerId, validatorId: at.validatorId, reason },
        'validator does not stop a deleted register',
      );
      // one that does not know it, or cannot stop it, will not do so later either
      return isAppError(error) && !isOutage(error);
    }
  }

  async function insist(at: ValidatorAddress, registerId: string): Promise<void> {
    let pauseMs = retryMs.first;
    for (let attempt = 1; attempt <= mostAttempts && !signal.aborted; attempt += 1) {
      if (await bid(at, registerId)) return;
      await rest(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, retryMs.last);
    }
  }

  return {
    tell(registerId, members) {
      for (const member of members.filter((one) => one.endpoint !== '')) {
        const telling = insist(member, registerId).finally(() => underWay.delete(telling));
        underWay.add(telling);
      }
    },
    async stop() {
      ending.abort();
      await Promise.all(underWay);
    },
  };
}

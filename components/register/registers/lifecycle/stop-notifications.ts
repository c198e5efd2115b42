import { setTimeout as rest } from 'node:timers/promises';
import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { isOutage, type ValidatorAddress, type Validators } from '../../clients/validators.ts';

interface StopNotificationsDeps {
  readonly validators: Pick<Validators, 'act'>;
  readonly log: Logger;
  /** Pause between attempts in milliseconds; it doubles from the first to the last. */
  readonly retryMs?: { readonly first: number; readonly last: number };
}

/** Sends stop notifications for deleted registers to validators. */
export interface StopNotifications {
  /**
   * Requests each validator to stop the register, repeatedly for about an hour, until it answers or this process ends.
   * A validator that restarts meanwhile does not load the register.
   */
  notify(registerId: string, members: readonly ValidatorAddress[]): void;
  stop(): Promise<void>;
}

const usualRetryMs = { first: 1_000, last: 30_000 };
/** About an hour: a validator that is silent for longer has most likely been restarted, or will be. */
const mostAttempts = 120;

/** Creates the notifier; once it is stopped, no more notifications are sent. */
export function createStopNotifications({
  validators,
  log,
  retryMs = usualRetryMs,
}: StopNotificationsDeps): StopNotifications {
  const ending = new AbortController();
  const { signal } = ending;
  const pending = new Set<Promise<void>>();

  /** Whether the notification is complete. */
  async function requestStop(at: ValidatorAddress, registerId: string): Promise<boolean> {
    try {
      await validators.act(at, registerId, 'stop');
      return true;
    } catch (error) {
      const reason = isAppError(error) ? error.code : String(error);
      log.warn(
        { registerId, validatorId: at.validatorId, reason },
        'a validator did not confirm that it stopped a deleted register',
      );
      // a validator that does not know the register, or cannot stop it, will not do so later either
      return isAppError(error) && !isOutage(error);
    }
  }

  async function notifyUntilAnswered(at: ValidatorAddress, registerId: string): Promise<void> {
    let pauseMs = retryMs.first;
    for (let attempt = 1; attempt <= mostAttempts && !signal.aborted; attempt += 1) {
      if (await requestStop(at, registerId)) return;
      await rest(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, retryMs.last);
    }
  }

  return {
    notify(registerId, members) {
      for (const member of members.filter((one) => one.endpoint !== '')) {
        const sending = notifyUntilAnswered(member, registerId).finally(() => pending.delete(sending));
        pending.add(sending);
      }
    },
    async stop() {
      ending.abort();
      await Promise.all(pending);
    },
  };
}

import { isAppError } from '#core/errors/errors.ts';
import type { CallerCheck } from '#kit/auth/auth.ts';
import type { Logger } from '#kit/log/log.ts';
import type { HubConnection } from './connection.ts';

interface JudgeOptions {
  readonly authenticator: CallerCheck;
  readonly judgeMs: number;
  readonly log: Logger;
}

/** Judges open connections again: their tokens at every tick, their subscriptions at an interval. */
export class Judge {
  readonly #options: JudgeOptions;
  readonly #due: HubConnection[] = [];
  #isJudging = false;

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  tick(connection: HubConnection, nowMs: number): void {
    const { authenticator, judgeMs } = this.#options;
    try {
      authenticator.assertCurrent(connection.caller);
    } catch (error) {
      connection.close(
        isAppError(error, 'unauthenticated') ? error.message : 'Tokens cannot be judged now.',
        true,
      );
      return;
    }
    if (nowMs - connection.judgedAtMs < judgeMs) return;
    connection.judgedAtMs = nowMs;
    this.#due.push(connection);
    if (!this.#isJudging) void this.#judgeAll();
  }

  /** One after the other, so that judging leaves the database to others. */
  async #judgeAll(): Promise<void> {
    this.#isJudging = true;
    const round = new Map<string, Promise<void>>();
    for (let connection = this.#due.shift(); connection !== undefined; connection = this.#due.shift()) {
      for (const group of [...connection.groups.keys()]) await this.#judge(connection, group, round);
    }
    this.#isJudging = false;
  }

  async #judge(connection: HubConnection, group: string, round: Map<string, Promise<void>>): Promise<void> {
    const subscribed = connection.groups.get(group);
    if (subscribed === undefined || connection.hasEnded) return;
    const { caller } = connection;
    const alike = JSON.stringify([group, subscribed.authorityOf(caller)]);
    const judged = round.get(alike) ?? subscribed.judge(caller);
    round.set(alike, judged);
    try {
      await judged;
    } catch (error) {
      const isRefused =
        isAppError(error, 'forbidden') ||
        isAppError(error, 'not_found') ||
        isAppError(error, 'unauthenticated');
      if (isRefused) connection.close(`Unauthorized: ${error.message}`, true);
      else this.#options.log.warn({ err: error }, 'a subscription could not be judged');
    }
  }
}

import { isAppError } from '#core/errors/errors.ts';
import type { CallerCheck } from '#kit/auth/auth.ts';
import type { Logger } from '#kit/log/log.ts';
import type { HubConnection, Judgement } from './connection.ts';

interface JudgeOptions {
  readonly authenticator: CallerCheck;
  readonly judgeMs: number;
  readonly log: Logger;
}

/** Judgements of one round by group and authority: why such connections are closed, undefined when they stay open. */
type Round = Map<string, Promise<string | undefined>>;

/** Judges open connections again: their tokens at every tick, their subscriptions at an interval. */
export class Judge {
  readonly #options: JudgeOptions;
  #due = new Set<HubConnection>();
  #isJudging = false;

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  /** Judges the token of a connection, and notes whether its subscriptions are due. */
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
    this.#due.add(connection);
  }

  /** Begins to judge the subscriptions that are due, unless an earlier round still runs and continues with them. */
  judgeDue(): void {
    if (!this.#isJudging && this.#due.size > 0) void this.#judgeAll();
  }

  /**
   * One after the other, so that judging leaves the database to others. A round takes the connections that are due when
   * it begins, and keeps no judgement for the next one: a connection is judged by what holds after it became due,
   * however far judging is behind.
   */
  async #judgeAll(): Promise<void> {
    this.#isJudging = true;
    while (this.#due.size > 0) {
      const connections = this.#due;
      this.#due = new Set();
      const round: Round = new Map();
      for (const connection of connections) {
        for (const group of [...connection.groups.keys()]) await this.#judge(connection, group, round);
      }
    }
    this.#isJudging = false;
  }

  async #judge(connection: HubConnection, group: string, round: Round): Promise<void> {
    const subscribed = connection.groups.get(group);
    if (subscribed === undefined || connection.hasEnded) return;
    const { caller } = connection;
    const alike = JSON.stringify([group, subscribed.authorityOf(caller)]);
    const judged = round.get(alike) ?? this.#refusalOf(group, subscribed.judge(caller));
    round.set(alike, judged);
    const refusal = await judged;
    if (refusal !== undefined) connection.close(`Unauthorized: ${refusal}`, true);
  }

  /** Undefined also for a judgement that failed: an outage of the database closes no connection. */
  async #refusalOf(group: string, judged: ReturnType<Judgement['judge']>): Promise<string | undefined> {
    try {
      await judged;
      return undefined;
    } catch (error) {
      const isRefused =
        isAppError(error, 'forbidden') ||
        isAppError(error, 'not_found') ||
        isAppError(error, 'unauthenticated');
      if (isRefused) return error.message;
      this.#options.log.warn({ err: error, group }, 'a subscription could not be judged');
      return undefined;
    }
  }
}

interface WaitingReplay {
  /** Whether the client of the replay still waits for it. */
  readonly isWanted: () => boolean;
  /** True starts the replay, false drops it. */
  readonly settle: (starts: boolean) => void;
}

/**
 * Bounds the replays that read at one time, so that connections of the pool remain for the live signals. A user has one
 * running replay; further ones wait, and users take turns, so that many connections of one user delay no other user.
 */
export class ReplayQueue {
  readonly #limit: number;
  readonly #running = new Set<string>();
  /** By user, in the order in which they have waited for a start. */
  readonly #waiting = new Map<string, WaitingReplay[]>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Runs a replay of a user when it may start. A waiting replay that is not wanted any more is dropped, so a user has no
   * more of them than connections.
   */
  async run(userId: string, isWanted: () => boolean, replay: () => Promise<void>): Promise<void> {
    if (this.#running.size < this.#limit && !this.#running.has(userId)) this.#running.add(userId);
    else if (!(await this.#wait(userId, isWanted))) return;
    try {
      if (isWanted()) await replay();
    } finally {
      this.#running.delete(userId);
      this.#startNext();
    }
  }

  #wait(userId: string, isWanted: () => boolean): Promise<boolean> {
    const { promise, resolve: settle } = Promise.withResolvers<boolean>();
    const others = this.#waiting.get(userId) ?? [];
    for (const other of others) if (!other.isWanted()) other.settle(false);
    this.#waiting.set(userId, [...others.filter((other) => other.isWanted()), { isWanted, settle }]);
    return promise;
  }

  #startNext(): void {
    const userId = this.#waiting.keys().find((each) => !this.#running.has(each));
    if (userId === undefined) return;
    const [next, ...others] = this.#waiting.get(userId) ?? [];
    this.#waiting.delete(userId);
    if (others.length > 0) this.#waiting.set(userId, others);
    this.#running.add(userId);
    next?.settle(true);
  }
}

interface GroupCommitOptions<Row> {
  /** Largest number of rows of one statement. */
  readonly limit: number;
  /** At most one row of a key is in a statement. */
  keyOf(row: Row): string;
  /** Commits the rows in one statement and returns the keys that took effect. */
  commit(rows: readonly Row[]): Promise<ReadonlySet<string>>;
}

interface WaitingRow<Row> {
  readonly row: Row;
  readonly key: string;
  readonly resolve: (tookEffect: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: rows that arrive while a statement is being committed share the next one. Rows of one key are committed
 * in the order of their arrival, each in a statement of its own. An error of a statement is that of all its rows.
 */
export class GroupCommit<Row> {
  readonly #options: GroupCommitOptions<Row>;
  #waiting: WaitingRow<Row>[] = [];
  #isCommitting = false;

  constructor(options: GroupCommitOptions<Row>) {
    this.#options = options;
  }

  /** Resolves with whether the row took effect, once that is committed. */
  add(row: Row): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, key: this.#options.keyOf(row), resolve, reject });
      if (!this.#isCommitting) void this.#commitAll();
    });
  }

  async #commitAll(): Promise<void> {
    this.#isCommitting = true;
    while (this.#waiting.length > 0) await this.#commit(this.#takeGroup());
    this.#isCommitting = false;
  }

  async #commit(group: readonly WaitingRow<Row>[]): Promise<void> {
    try {
      const effective = await this.#options.commit(group.map(({ row }) => row));
      for (const { key, resolve } of group) resolve(effective.has(key));
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  /** The oldest rows, one of a key, up to the limit. */
  #takeGroup(): WaitingRow<Row>[] {
    const keys = new Set<string>();
    const group: WaitingRow<Row>[] = [];
    const rest: WaitingRow<Row>[] = [];
    for (const waiting of this.#waiting) {
      const isTaken = group.length < this.#options.limit && !keys.has(waiting.key);
      keys.add(waiting.key);
      (isTaken ? group : rest).push(waiting);
    }
    this.#waiting = rest;
    return group;
  }
}

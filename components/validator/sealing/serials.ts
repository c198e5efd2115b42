/** Counts admissions that are under way, so that stored transactions are remembered as long as one may need them. */
export class Serials {
  readonly #active = new Set<number>();
  #next = 1;

  begin(): number {
    const serial = this.#next;
    this.#next += 1;
    this.#active.add(serial);
    return serial;
  }

  end(serial: number): void {
    this.#active.delete(serial);
  }

  /** The serial of the latest admission that has begun. */
  get latest(): number {
    return this.#next - 1;
  }

  /** Serials below it have ended. */
  get oldestActive(): number {
    const [oldest] = this.#active;
    return oldest ?? this.#next;
  }
}

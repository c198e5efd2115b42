/** Epochs of admissions in progress: stored transactions are kept for duplicate detection while an older admission runs. */
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

  /** The epoch of the latest admission. */
  get latest(): number {
    return this.#next - 1;
  }

  /** All earlier epochs have ended. */
  get oldestActive(): number {
    const [oldest] = this.#active;
    return oldest ?? this.#next;
  }
}

/** Epochs of admissions in progress: stored transactions are kept for duplicate detection while an older admission runs. */
export class AdmissionEpochs {
  readonly #active = new Set<number>();
  #next = 1;

  begin(): number {
    const epoch = this.#next;
    this.#next += 1;
    this.#active.add(epoch);
    return epoch;
  }

  end(epoch: number): void {
    this.#active.delete(epoch);
  }

  /** Whether an admission is in progress. */
  get isActive(): boolean {
    return this.#active.size > 0;
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

/** A binary heap with logarithmic push and pop. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #isBefore: (left: T, right: T) => boolean;

  constructor(isBefore: (left: T, right: T) => boolean) {
    this.#isBefore = isBefore;
  }

  first(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let index = items.push(item) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (!this.#swapIfNeeded(above, index)) return;
      index = above;
    }
  }

  pop(): T | undefined {
    const items = this.#items;
    const [first, last] = [items[0], items.pop()];
    if (items.length === 0 || last === undefined) return first;
    items[0] = last;
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      const below = this.#isAbove(left + 1, left) ? left + 1 : left;
      if (!this.#swapIfNeeded(index, below)) return first;
      index = below;
    }
  }

  #isAbove(left: number, right: number): boolean {
    const [one, other] = [this.#items[left], this.#items[right]];
    return one !== undefined && other !== undefined && this.#isBefore(one, other);
  }

  /** Swaps parent and child if they are out of order; returns whether it did. */
  #swapIfNeeded(above: number, below: number): boolean {
    const [one, other] = [this.#items[above], this.#items[below]];
    if (one === undefined || other === undefined || !this.#isBefore(other, one)) return false;
    this.#items[above] = other;
    this.#items[below] = one;
    return true;
  }
}

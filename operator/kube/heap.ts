/** A binary heap: adding and taking the first cost the logarithm of the size. */
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
    let place = items.push(item) - 1;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (!this.#swapped(above, place)) return;
      place = above;
    }
  }

  pop(): T | undefined {
    const items = this.#items;
    const [first, last] = [items[0], items.pop()];
    if (items.length === 0 || last === undefined) return first;
    items[0] = last;
    for (let place = 0; ; ) {
      const left = 2 * place + 1;
      const below = this.#isAbove(left + 1, left) ? left + 1 : left;
      if (!this.#swapped(place, below)) return first;
      place = below;
    }
  }

  #isAbove(left: number, right: number): boolean {
    const [one, other] = [this.#items[left], this.#items[right]];
    return one !== undefined && other !== undefined && this.#isBefore(one, other);
  }

  /** Puts two places right; whether they were wrong. */
  #swapped(above: number, below: number): boolean {
    const [one, other] = [this.#items[above], this.#items[below]];
    if (one === undefined || other === undefined || !this.#isBefore(other, one)) return false;
    this.#items[above] = other;
    this.#items[below] = one;
    return true;
  }
}

/** An honest validator has one; more for a moment, when the network lost one and nobody has noticed. */
const mostOpen = 4;

interface Open {
  readonly end: () => void;
  isOpen: boolean;
}

/** The streams that stand from each validator, bounded: a new one ends the oldest. */
export class Streams {
  readonly #open = new Map<string, Open[]>();

  /** @returns `isOver` resolves when newer streams have taken the place of this one */
  open(from: string): { readonly isOver: Promise<void>; isOpen(): boolean; close(): void } {
    const { promise: isOver, resolve } = Promise.withResolvers<void>();
    const own: Open = { end: resolve, isOpen: true };
    const streams = [...(this.#open.get(from) ?? []), own];
    for (const old of streams.splice(0, streams.length - mostOpen)) {
      old.isOpen = false;
      old.end();
    }
    this.#open.set(from, streams);
    return { isOver, isOpen: () => own.isOpen, close: () => this.#close(from, own) };
  }

  /** How many stand. */
  get size(): number {
    let size = 0;
    for (const streams of this.#open.values()) size += streams.length;
    return size;
  }

  #close(from: string, own: Open): void {
    own.isOpen = false;
    const left = (this.#open.get(from) ?? []).filter((each) => each !== own);
    if (left.length === 0) this.#open.delete(from);
    else this.#open.set(from, left);
  }
}

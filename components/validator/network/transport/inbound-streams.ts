/** A correct validator has one stream, and briefly more when a lost one has not timed out yet. */
const maxOpen = 4;

interface OpenStream {
  readonly end: () => void;
  isOpen: boolean;
}

/** The open streams of each validator, bounded: a new one closes the oldest. */
export class InboundStreams {
  readonly #open = new Map<string, OpenStream[]>();

  /** @returns `isOver` resolves when newer streams have replaced this one */
  open(from: string): { readonly isOver: Promise<void>; isOpen(): boolean; close(): void } {
    const { promise: isOver, resolve } = Promise.withResolvers<void>();
    const own: OpenStream = { end: resolve, isOpen: true };
    const streams = [...(this.#open.get(from) ?? []), own];
    for (const old of streams.splice(0, streams.length - maxOpen)) {
      old.isOpen = false;
      old.end();
    }
    this.#open.set(from, streams);
    return { isOver, isOpen: () => own.isOpen, close: () => this.#close(from, own) };
  }

  /** Number of open streams. */
  get size(): number {
    let size = 0;
    for (const streams of this.#open.values()) size += streams.length;
    return size;
  }

  #close(from: string, own: OpenStream): void {
    own.isOpen = false;
    const left = (this.#open.get(from) ?? []).filter((each) => each !== own);
    if (left.length === 0) this.#open.delete(from);
    else this.#open.set(from, left);
  }
}

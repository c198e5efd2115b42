interface Outlet {
  /** The next message; undefined when nothing waits to be sent. */
  readonly next: () => Buffer | undefined;
  /** Writes a message and calls back when the transport has taken it. */
  readonly write: (message: Buffer, written: () => void) => void;
}

/**
 * Sends what is ready in the same turn of the event loop as one message. The next message is made when the transport has
 * taken the last one, so that a slow reader holds back the sender and not the memory of the transport.
 */
export class CoalescingWriter {
  readonly #outlet: Outlet;
  #isScheduled = false;
  #isWriting = false;

  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  /** Something waits to be sent. */
  notify(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    const message = this.#outlet.next();
    if (message === undefined) return;
    this.#isWriting = true;
    this.#outlet.write(message, () => {
      this.#isWriting = false;
      this.#send();
    });
  }
}

import { createHash } from 'node:crypto';
import type { EventQueue } from './event-queue.ts';

/** The events of a simulated world, line by line. */
export class Trace {
  readonly #eventQueue: EventQueue;
  readonly #lines: string[] = [];

  constructor(eventQueue: EventQueue) {
    this.#eventQueue = eventQueue;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  add(source: string, what: string): void {
    const seconds = (this.#eventQueue.elapsedMs / 1000).toFixed(4).padStart(9);
    this.#lines.push(`${seconds}  ${source.padEnd(12)} ${what}`);
  }

  /** Lower hex of SHA-256 over all lines; equal runs have equal digests. */
  digest(): string {
    const hash = createHash('sha256');
    for (const line of this.#lines) hash.update(line).update('\n');
    return hash.digest('hex');
  }
}

/** The first characters of an id or hash, enough to distinguish a few hundred. */
export function short(hex: string | undefined): string {
  return hex === undefined || hex === '' ? 'nil' : hex.slice(0, 6);
}

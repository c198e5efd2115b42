import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Envelope } from './transport.ts';

const windowMs = 1_000;
const mostPerWindow = 20;
/** Messages about docket 0 of registers that have not begun here; they are small. */
const mostEarly = 256;

interface Early {
  readonly from: string;
  readonly envelope: Envelope;
}

/**
 * Registers that others speak of and that are not known here, and questions to others that cost something: both are asked
 * about a bounded number of times a second, whoever makes them up.
 */
export class Strangers {
  readonly #clock: Clock;
  readonly #find: (registerId: string) => Promise<unknown>;
  readonly #early: Early[] = [];
  #asked = new Set<string>();
  #sinceMs = 0;

  constructor(clock: Clock, find: (registerId: string) => Promise<unknown>) {
    this.#clock = clock;
    this.#find = find;
  }

  /** Another validator speaks of a register: this one may have become a member of it. */
  meet(from: string, registerId: string): void {
    if (findRegisterId(registerId) !== registerId || !this.mayAsk(from, registerId)) return;
    // That the register service cannot answer is found out again by the next message.
    this.#find(registerId).catch(() => {});
  }

  /** Another member may have got the genesis transaction first: what it says of docket 0 is kept until it comes here. */
  keepEarly(from: string, envelope: Envelope): void {
    if (heightOf(envelope) !== 0) return;
    this.#early.push({ from, envelope });
    if (this.#early.length > mostEarly) this.#early.shift();
  }

  /** What was kept for a register. */
  takeEarly(registerId: string): readonly Early[] {
    const found = this.#early.filter(({ envelope }) => envelope.registerId === registerId);
    for (const each of found) this.#early.splice(this.#early.indexOf(each), 1);
    return found;
  }

  mayAsk(about: string, registerId: string): boolean {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#sinceMs >= windowMs) {
      this.#asked = new Set();
      this.#sinceMs = nowMs;
    }
    const name = `${about}/${registerId}`;
    if (this.#asked.has(name) || this.#asked.size >= mostPerWindow) return false;
    this.#asked.add(name);
    return true;
  }
}

function heightOf(envelope: Envelope): number | undefined {
  if (envelope.kind === 'vote') return envelope.vote.height;
  const isDocket0 = envelope.kind === 'proposal' && envelope.recordHashes.length === 1;
  return isDocket0 ? envelope.proposal.height : undefined;
}

import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Envelope } from './transport.ts';

const windowMs = 1_000;
const mostPerWindow = 20;
/** A little more than the time for which an answer that a register is not this validator's is remembered. */
const againMs = 1_100;
/** Messages about docket 0 of registers that have not begun here. */
const mostEarly = 256;
/** Nothing of them is verified: whoever sends too much of it pushes out its own. */
const mostEarlyOfOne = { messages: 64, bytes: 2 * 1024 * 1024 } as const;
const mostSenders = 16;

interface Early {
  readonly from: string;
  readonly envelope: Envelope;
  readonly sizeBytes: number;
}

/** Acts once after that many milliseconds; a key that is set again replaces what it stood for. */
type Later = (key: string, afterMs: number, act: () => void) => void;

/**
 * Registers that others speak of and that are not known here, and questions to others that cost something: both are asked
 * about a bounded number of times a second, whoever makes them up.
 */
export class Strangers {
  readonly #clock: Clock;
  readonly #find: (registerId: string) => Promise<unknown>;
  readonly #later: Later;
  readonly #waiting = new Set<string>();
  #early: Early[] = [];
  #asked = new Set<string>();
  #sinceMs = 0;

  constructor(clock: Clock, find: (registerId: string) => Promise<unknown>, later: Later) {
    this.#clock = clock;
    this.#find = find;
    this.#later = later;
  }

  /** Another validator speaks of a register: this one may have become a member of it. */
  meet(from: string, registerId: string): void {
    if (findRegisterId(registerId) !== registerId || !this.mayAsk(from, registerId)) return;
    this.#ask(registerId, true);
  }

  /**
   * A register that rests is not spoken of again. The docket that lets this validator in may be stored a moment after others
   * tell of it, and the register service may be away: what was not found is asked once more, what was not answered until it is.
   */
  #ask(registerId: string, isFirst: boolean): void {
    const again = () => {
      if (!this.#waiting.has(registerId) && this.#waiting.size >= mostPerWindow) return;
      this.#waiting.add(registerId);
      this.#later(`meet/${registerId}`, againMs, () => {
        this.#waiting.delete(registerId);
        this.#ask(registerId, false);
      });
    };
    this.#find(registerId).then((found) => {
      if (found === undefined && isFirst) again();
    }, again);
  }

  /** Another member may have got the genesis transaction first: what it says of docket 0 is kept until it comes here. */
  keepEarly(from: string, envelope: Envelope): void {
    if (heightOf(envelope) !== 0) return;
    const senders = new Set(this.#early.map((each) => each.from));
    if (!senders.has(from) && senders.size >= mostSenders) return;
    this.#early.push({ from, envelope, sizeBytes: weigh(envelope) });
    const own = this.#early.filter((each) => each.from === from);
    let bytes = own.reduce((sum, each) => sum + each.sizeBytes, 0);
    const tooMany = new Set<Early>();
    for (const [index, each] of own.entries()) {
      if (bytes <= mostEarlyOfOne.bytes && own.length - index <= mostEarlyOfOne.messages) break;
      tooMany.add(each);
      bytes -= each.sizeBytes;
    }
    this.#early = this.#early.filter((each) => !tooMany.has(each)).slice(-mostEarly);
  }

  /** About how many bytes the messages that are kept take. */
  get earlyBytes(): number {
    return this.#early.reduce((sum, each) => sum + each.sizeBytes, 0);
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
  if (envelope.kind !== 'proposal') return undefined;
  const { recordHashes, header, proposal } = envelope;
  const isDocket0 = recordHashes.length === 1 && header.transactionIds.length === 1;
  return isDocket0 ? proposal.height : undefined;
}

/** About how many bytes an envelope takes in memory. */
function weigh(envelope: Envelope): number {
  const base = 4_096;
  return envelope.kind === 'proposal' ? base + 2 * (envelope.header.genesisConfig?.length ?? 0) : base;
}

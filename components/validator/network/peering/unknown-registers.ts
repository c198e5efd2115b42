import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Envelope } from '../transport/transport.ts';

const windowMs = 1_000;
const maxPerWindow = 20;
/** Slightly longer than the negative cache of unknown registers. */
const retryLookupMs = 1_100;
/** Bound of messages about docket 0 of registers that have not begun here. */
const maxEarly = 256;
/** Unverified messages are bounded per sender; a sender that exceeds the bound evicts its own. */
const maxEarlyPerSender = { messages: 64, bytes: 2 * 1024 * 1024 } as const;
const maxSenders = 16;

interface BufferedMessage {
  readonly from: string;
  readonly envelope: Envelope;
  readonly sizeBytes: number;
}

/** Runs the callback once after that many milliseconds; setting the same key again replaces it. */
type SetTimer = (key: string, afterMs: number, callback: () => void) => void;

/**
 * Discovers registers that peers mention and this validator does not know. Lookups, and requests to peers that cost
 * something, are limited per second, so that invented registers cannot cause load.
 */
export class UnknownRegisters {
  readonly #clock: Clock;
  readonly #find: (registerId: string) => Promise<unknown>;
  readonly #setTimer: SetTimer;
  readonly #waiting = new Set<string>();
  #early: BufferedMessage[] = [];
  #lookedUp = new Set<string>();
  #sinceMs = 0;

  constructor(clock: Clock, find: (registerId: string) => Promise<unknown>, setTimer: SetTimer) {
    this.#clock = clock;
    this.#find = find;
    this.#setTimer = setTimer;
  }

  /** A peer mentioned a register: this validator may have become a member of it. */
  discover(from: string, registerId: string): void {
    if (findRegisterId(registerId) !== registerId || !this.mayRequest(from, registerId)) return;
    this.#ask(registerId, true);
  }

  /**
   * Looks the register up. Idle registers are not mentioned again, and the docket that admits this validator may be stored a
   * moment later. A negative answer is therefore checked once more, and a failed lookup is retried until it is answered.
   */
  #ask(registerId: string, isFirst: boolean): void {
    const again = () => {
      if (!this.#waiting.has(registerId) && this.#waiting.size >= maxPerWindow) return;
      this.#waiting.add(registerId);
      this.#setTimer(`meet/${registerId}`, retryLookupMs, () => {
        this.#waiting.delete(registerId);
        this.#ask(registerId, false);
      });
    };
    this.#find(registerId).then((found) => {
      if (found === undefined && isFirst) again();
    }, again);
  }

  /** Another member may have received genesis first: its messages about docket 0 are buffered until the register begins here. */
  bufferEarly(from: string, envelope: Envelope): void {
    if (heightOf(envelope) !== 0) return;
    const senders = new Set(this.#early.map((each) => each.from));
    if (!senders.has(from) && senders.size >= maxSenders) return;
    this.#early.push({ from, envelope, sizeBytes: approximateBytes(envelope) });
    const own = this.#early.filter((each) => each.from === from);
    let bytes = own.reduce((sum, each) => sum + each.sizeBytes, 0);
    const tooMany = new Set<BufferedMessage>();
    for (const [index, each] of own.entries()) {
      if (bytes <= maxEarlyPerSender.bytes && own.length - index <= maxEarlyPerSender.messages) break;
      tooMany.add(each);
      bytes -= each.sizeBytes;
    }
    this.#early = this.#early.filter((each) => !tooMany.has(each)).slice(-maxEarly);
  }

  /** Approximate size of the buffered messages in bytes. */
  get earlyBytes(): number {
    return this.#early.reduce((sum, each) => sum + each.sizeBytes, 0);
  }

  /** Removes and returns the messages buffered for a register. */
  takeEarly(registerId: string): readonly BufferedMessage[] {
    const found = this.#early.filter(({ envelope }) => envelope.registerId === registerId);
    for (const each of found) this.#early.splice(this.#early.indexOf(each), 1);
    return found;
  }

  mayRequest(about: string, registerId: string): boolean {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#sinceMs >= windowMs) {
      this.#lookedUp = new Set();
      this.#sinceMs = nowMs;
    }
    const name = `${about}/${registerId}`;
    if (this.#lookedUp.has(name) || this.#lookedUp.size >= maxPerWindow) return false;
    this.#lookedUp.add(name);
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

/** Approximate memory size of an envelope in bytes. */
function approximateBytes(envelope: Envelope): number {
  const base = 4_096;
  return envelope.kind === 'proposal' ? base + 2 * (envelope.header.genesisConfig?.length ?? 0) : base;
}

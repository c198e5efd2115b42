import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { type KeyKind, mayHold, wordsOf } from './filter.ts';
import { buildFilter, everywhere, findFilter, type KeyPlaces } from './store.ts';

/** A register with the segment that is open, as some statement has just read it. */
export interface SegmentedRegister {
  readonly registerNo: number;
  readonly registerId: string;
  readonly segment: number;
}

/** What this process knows of the sealed segments of registers. What it does not know yet, statements look into. */
export interface Segments {
  /** Learns filters of segments that were sealed since, behind the caller's back. */
  of(register: SegmentedRegister): KeyPlaces;
  /** The same where only the id of the register is at hand. */
  named(registerId: string): KeyPlaces;
  /** Resolves when everything is learnt that there was to learn. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface SegmentsOptions {
  readonly database: Pick<Database<RegisterSchema>, 'read' | 'transact'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of filters that are kept; 64 MiB when absent. */
  readonly mostBytes?: number;
}

interface Known {
  readonly registerNo: number;
  readonly filters: Buffer[];
  learning: boolean;
  askedAtMs: number;
  /** there was no room until then */
  fullUntilMs: number;
  forgotten: boolean;
}

/** Registers that were asked about since keep what is known of them: those beyond the room would take turns in losing it. */
const idleMs = 600_000;

function unknown(registerNo: number): Known {
  return { registerNo, filters: [], learning: false, askedAtMs: 0, fullUntilMs: 0, forgotten: false };
}

const sizeOf = ({ filters }: Known) => filters.reduce((sum, filter) => sum + filter.length, 0);

function placesOf({ filters }: Known): KeyPlaces {
  const from = filters.length;
  return {
    from,
    before(kind: KeyKind, key: Buffer) {
      if (from === 0) return [];
      const words = wordsOf(kind, key);
      const found: number[] = [];
      for (let segment = from - 1; segment >= 0; segment -= 1) {
        const filter = filters[segment];
        if (filter !== undefined && mayHold(filter, words)) found.push(segment);
      }
      return found;
    },
  };
}

/**
 * Keeps Bloom filters of sealed segments of the registers that are in use. A sealed segment never changes, so its filter
 * holds for good; it is kept in the database and made by whoever needs it first. What finds no room is looked into.
 */
export function createSegments(options: SegmentsOptions): Segments {
  const { database, clock, log, mostBytes = 64 * 1024 * 1024 } = options;
  const known = new Map<string, Known>();
  let work: Promise<void> = Promise.resolve();
  let stopped = false;

  function forget(registerId: string): void {
    const one = known.get(registerId);
    if (one !== undefined) one.forgotten = true;
    known.delete(registerId);
  }

  /** Forgets what nobody asks about any more until so many bytes fit; false when they do not. */
  function makeRoom(bytes: number): boolean {
    let used = [...known.values()].reduce((sum, one) => sum + sizeOf(one), 0);
    for (const [registerId, one] of known) {
      if (used + bytes <= mostBytes) return true;
      if (clock.nowMs() - one.askedAtMs < idleMs) break;
      used -= sizeOf(one);
      forget(registerId);
    }
    return used + bytes <= mostBytes;
  }

  async function learn(one: Known, open: number): Promise<void> {
    const { registerNo, filters } = one;
    while (filters.length < open && !one.forgotten && !stopped) {
      const segment = filters.length;
      const filter =
        (await findFilter(database.read, registerNo, segment)) ??
        (await buildFilter(database, registerNo, segment));
      if (!makeRoom(filter.length)) {
        one.fullUntilMs = clock.nowMs() + idleMs;
        return;
      }
      filters.push(filter);
    }
  }

  function startLearning(one: Known, open: number): void {
    one.learning = true;
    work = work
      .then(() => learn(one, open))
      .catch((error: unknown) => {
        log.warn({ err: error, registerNo: one.registerNo }, 'a filter of sealed keys could not be had');
      })
      .finally(() => {
        one.learning = false;
      });
  }

  return {
    of({ registerNo, registerId, segment }) {
      const before = known.get(registerId);
      // a database that was put back has other segments now
      if (before !== undefined && before.filters.length > segment) forget(registerId);
      if (segment === 0) return everywhere;
      const nowMs = clock.nowMs();
      const one = known.get(registerId) ?? unknown(registerNo);
      one.askedAtMs = nowMs;
      // the one that nobody asked about for longest comes first
      known.delete(registerId);
      known.set(registerId, one);
      const isOpen = !one.learning && nowMs >= one.fullUntilMs && !stopped;
      if (one.filters.length < segment && isOpen) startLearning(one, segment);
      return placesOf(one);
    },
    named(registerId) {
      const one = known.get(registerId);
      return one === undefined ? everywhere : placesOf(one);
    },
    settled: () => work,
    async stop() {
      stopped = true;
      await work;
    },
  };
}

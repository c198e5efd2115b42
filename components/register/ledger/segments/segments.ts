import { type KeyKind, mayHold, wordsOf } from '#core/ledger/key-filter.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { everywhere, type KeySegments, loadFilter } from './store.ts';

/** A register with its open segment, as just read by a statement. */
interface SegmentedRegister {
  readonly registerNo: number;
  readonly registerId: string;
  readonly segment: number;
}

/** The sealed segments that this process has filters of. Statements search the other ones. */
export interface Segments {
  /** The key segments of a register; loads missing filters in the background. */
  of(register: SegmentedRegister): KeySegments;
  /** The same by the id of the register. */
  named(registerId: string): KeySegments;
  /** Resolves when no filter is being loaded. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

interface SegmentsOptions {
  readonly database: Pick<Database<RegisterSchema>, 'read' | 'transact'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Maximum bytes of cached filters; 64 MiB when absent. */
  readonly mostBytes?: number;
}

interface CachedFilters {
  readonly registerNo: number;
  readonly filters: Buffer[];
  learning: boolean;
  askedAtMs: number;
  /** no room in the cache until then */
  fullUntilMs: number;
  forgotten: boolean;
}

/**
 * A register used within this time keeps its filters: with more registers than room they would evict each other all the
 * time.
 */
const idleMs = 600_000;

function withoutFilters(registerNo: number): CachedFilters {
  return { registerNo, filters: [], learning: false, askedAtMs: 0, fullUntilMs: 0, forgotten: false };
}

const sizeOf = ({ filters }: CachedFilters) => filters.reduce((sum, filter) => sum + filter.length, 0);

function keySegmentsOf({ filters }: CachedFilters): KeySegments {
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
 * Caches Bloom filters of sealed segments of the registers in use. A sealed segment never changes, so its filter stays
 * valid; it is stored in the database and built by the first process that needs it. Segments without a cached filter
 * are searched.
 */
export function createSegments(options: SegmentsOptions): Segments {
  const { database, clock, log, mostBytes = 64 * 1024 * 1024 } = options;
  const known = new Map<string, CachedFilters>();
  let work: Promise<void> = Promise.resolve();
  let stopped = false;

  function evict(registerId: string): void {
    const one = known.get(registerId);
    if (one !== undefined) one.forgotten = true;
    known.delete(registerId);
  }

  /** Evicts filters of idle registers until the bytes fit; false when they do not. */
  function makeRoom(bytes: number): boolean {
    let used = [...known.values()].reduce((sum, one) => sum + sizeOf(one), 0);
    for (const [registerId, one] of known) {
      if (used + bytes <= mostBytes) return true;
      if (clock.nowMs() - one.askedAtMs < idleMs) break;
      used -= sizeOf(one);
      evict(registerId);
    }
    return used + bytes <= mostBytes;
  }

  async function learn(one: CachedFilters, open: number): Promise<void> {
    const { registerNo, filters } = one;
    while (filters.length < open && !one.forgotten && !stopped) {
      const segment = filters.length;
      const filter = await loadFilter(database, registerNo, segment);
      if (!makeRoom(filter.length)) {
        one.fullUntilMs = clock.nowMs() + idleMs;
        return;
      }
      filters.push(filter);
    }
  }

  function startLearning(one: CachedFilters, open: number): void {
    one.learning = true;
    work = work
      .then(() => learn(one, open))
      .catch((error: unknown) => {
        log.warn(
          { err: error, registerNo: one.registerNo },
          'the filter of a sealed key segment could not be loaded; the segment is searched',
        );
      })
      .finally(() => {
        one.learning = false;
      });
  }

  return {
    of({ registerNo, registerId, segment }) {
      const before = known.get(registerId);
      // a restored database has other segments
      if (before !== undefined && before.filters.length > segment) evict(registerId);
      if (segment === 0) return everywhere;
      const nowMs = clock.nowMs();
      const one = known.get(registerId) ?? withoutFilters(registerNo);
      one.askedAtMs = nowMs;
      // least recently used first
      known.delete(registerId);
      known.set(registerId, one);
      const isOpen = !one.learning && nowMs >= one.fullUntilMs && !stopped;
      if (one.filters.length < segment && isOpen) startLearning(one, segment);
      return keySegmentsOf(one);
    },
    named(registerId) {
      const one = known.get(registerId);
      return one === undefined ? everywhere : keySegmentsOf(one);
    },
    settled: () => work,
    async stop() {
      stopped = true;
      await work;
    },
  };
}

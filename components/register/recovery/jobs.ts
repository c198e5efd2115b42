import { createBell } from '#kit/clock/bell.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { type RecoverDeps, recover } from './recover.ts';
import type { DocketSource, FindSources } from './source.ts';
import { storedHeights } from './store.ts';
import { aggregate, type SyncEntry, type SyncStatus, Track } from './track.ts';

export interface RecoveryDeps extends Omit<RecoverDeps, 'within'>, Partial<Pick<RecoverDeps, 'within'>> {
  readonly database: Database<RegisterSchema>;
  readonly findSources: FindSources;
  readonly log: Logger;
  /** Told when a register begins to recover, is synced again, or stalls. */
  readonly onChanged: (registerId: string, status: SyncStatus) => Promise<void>;
}

/** What `/health/sync` answers. */
export interface SyncHealth {
  readonly status: SyncStatus;
  readonly registerCount: number;
  /** Those that are not synced first, and as many as an answer holds. */
  readonly registers: readonly SyncEntry[];
  /** When the sources were asked last; 0 before the first time. */
  readonly checkedAtMs: number;
}

export interface Recovery {
  /** Asks all sources once and brings what is missing. Never throws. */
  round(): Promise<void>;
  health(): SyncHealth;
}

export interface RecoveryJob extends Recovery {
  /** A source may have come. */
  kick(): void;
  stop(): Promise<void>;
}

const everyMs = 10_000;
const mostAtOnce = 3;
const mostShown = 1_000;
/** Validators bring what they seal: a register that grows within this time lacks nothing, however far ahead they are. */
const settleMs = 1_000;

/** What a promise comes to, or undefined after `ms`; a late one is left to itself. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, ms, undefined);
  timer.unref();
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

interface Told {
  readonly source: DocketSource;
  readonly heights: ReadonlyMap<string, number>;
}

/** What sources say that there is of a register, at most. */
function heightOf(registerId: string, told: readonly Told[]): number {
  return Math.max(0, ...told.map(({ heights }) => heights.get(registerId) ?? 0));
}

interface Seen {
  readonly stored: ReadonlyMap<string, number>;
  /** Those that do not grow by themselves. */
  readonly resting: ReadonlySet<string>;
}

/** How high registers stand, looked at twice where somebody says that there is more. */
async function look(
  heights: () => Promise<ReadonlyMap<string, number>>,
  told: readonly Told[],
  settle: () => Promise<unknown>,
): Promise<Seen> {
  const first = await heights();
  const isBehind = [...first].some(([registerId, height]) => heightOf(registerId, told) > height);
  if (!isBehind) return { stored: first, resting: new Set(first.keys()) };
  await settle();
  const stored = await heights();
  const resting = [...stored].filter(([registerId, height]) => height === first.get(registerId));
  return { stored, resting: new Set(resting.map(([registerId]) => registerId)) };
}

/** Registers of this service beside what sources say of them. A register that is not behind costs nothing but its entry. */
export function createRecovery(deps: RecoveryDeps): Recovery {
  const { database, clock, log } = deps;
  const recovering = { ...deps, within: deps.within ?? within };
  const heights = () => storedHeights(database.read);
  const settle = () => recovering.within(new Promise<never>(() => undefined), settleMs);
  const tracks = new Map<string, Track>();
  let checkedAtMs = 0;

  async function ask(): Promise<readonly Told[]> {
    const sources = await deps.findSources();
    const told = await Promise.all(
      sources.map(async (source) => {
        try {
          return [{ source, heights: await source.heights() }];
        } catch (error) {
          log.debug({ err: error, peer: source.name }, 'a source of dockets does not answer');
          return [];
        }
      }),
    );
    return told.flat();
  }

  function follow({ stored, resting }: Seen, told: readonly Told[]): void {
    for (const registerId of tracks.keys()) if (!stored.has(registerId)) tracks.delete(registerId);
    for (const [registerId, height] of stored) {
      const track = tracks.get(registerId) ?? new Track(registerId, height);
      tracks.set(registerId, track);
      const before = track.status;
      const isGrowing = before === 'synced' && !resting.has(registerId);
      track.observe(height, isGrowing ? height : Math.max(height, heightOf(registerId, told)));
      if (track.status !== before) tell(track);
    }
  }

  function tell({ registerId, status }: Track): void {
    const level = status === 'stalled' ? 'warn' : 'info';
    log[level]({ registerId, status }, 'the synchronisation of a register changed');
    deps.onChanged(registerId, status).catch((error: unknown) => {
      log.warn({ err: error, registerId }, 'a change of synchronisation was not told');
    });
  }

  /** The one that has most comes first. */
  async function catchUp(track: Track, told: readonly Told[]): Promise<void> {
    const { registerId, current } = track;
    const heightAt = ({ heights }: Told) => heights.get(registerId) ?? 0;
    const able = told.filter((one) => heightAt(one) > current).toSorted((a, b) => heightAt(b) - heightAt(a));
    const isNew = track.status !== 'recovering';
    const done = recover(
      track,
      able.map(({ source }) => source),
      recovering,
    );
    if (isNew) tell(track);
    await done;
    tell(track);
  }

  return {
    async round() {
      try {
        // Sources first: what they tell may be stored by the time that this service is looked at, never the reverse.
        const told = await ask();
        follow(await look(heights, told, settle), told);
        checkedAtMs = clock.nowMs();
        const due = [...tracks.values()].filter((track) => track.isDue(clock.nowMs()));
        const line = due.values();
        const work = async () => {
          for (const track of line) await catchUp(track, told);
        };
        await Promise.all(Array.from({ length: Math.min(mostAtOnce, due.length) }, work));
      } catch (error) {
        log.warn({ err: error }, 'a round of recovery failed');
      }
    },
    health() {
      const nowMs = clock.nowMs();
      const all = [...tracks.values()];
      const behind = all.filter(({ status }) => status !== 'synced');
      const synced = all.filter(({ status }) => status === 'synced');
      const shown = [...behind, ...synced].slice(0, mostShown);
      return {
        status: aggregate(all.map(({ status }) => status)),
        registerCount: all.length,
        registers: shown.map((track) => track.entry(nowMs)),
        checkedAtMs,
      };
    },
  };
}

/** Asks the sources again and again. */
export function startRecovery(deps: RecoveryDeps): RecoveryJob {
  const ending = Promise.withResolvers<undefined>();
  const bell = createBell();
  let stopped = false;
  const recovery = createRecovery({
    ...deps,
    // A source that says nothing is not waited for when the service ends, and nothing is told of that.
    within: (promise, ms) => Promise.race([within(promise, ms), ending.promise]),
    onChanged: async (registerId, status) => {
      if (!stopped) await deps.onChanged(registerId, status);
    },
  });

  async function loop(): Promise<void> {
    while (!stopped) {
      await recovery.round();
      await bell.rest(everyMs);
    }
  }

  const running = loop();
  return {
    ...recovery,
    kick: () => bell.ring(),
    async stop() {
      stopped = true;
      ending.resolve(undefined);
      bell.ring();
      await running;
    },
  };
}

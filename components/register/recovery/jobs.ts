import { startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Database } from '#kit/db/db.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { type RecoverDeps, recover } from './recover.ts';
import type { DocketSource, FindSources } from './source.ts';
import { storedHeights } from './store.ts';
import { aggregate, type SyncEntry, type SyncStatus, Track } from './track.ts';
import { createWaits } from './waits.ts';

export interface RecoveryDeps extends RecoverDeps {
  readonly database: Database<RegisterSchema>;
  readonly findSources: FindSources;
  /** Waits as long as a docket may be on its way here. */
  readonly settle: () => Promise<void>;
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
  wake(): void;
  stop(): Promise<void>;
}

const everyMs = 10_000;
const mostShown = 1_000;
/** Validators bring what they seal: a register that grows within this time lacks nothing, however far ahead they are. */
const settleMs = 1_000;

/** What a source said when it answered last. */
interface Told {
  readonly source: DocketSource;
  readonly heights: ReadonlyMap<string, number>;
  readonly isHere: boolean;
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
  settle: () => Promise<void>,
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
  const heights = () => storedHeights(database.read);
  const tracks = new Map<string, Track>();
  let said: ReadonlyMap<string, Told> = new Map();
  let checkedAtMs = 0;

  /** A source that does not answer takes nothing back. */
  async function ask(): Promise<readonly Told[]> {
    const sources = await deps.findSources();
    const answers = await Promise.all(
      sources.map(async (source): Promise<Told[]> => {
        try {
          return [{ source, heights: await source.heights(), isHere: true }];
        } catch (error) {
          log.debug({ err: error, peer: source.name }, 'a source of dockets does not answer');
          const before = said.get(source.name);
          return before === undefined ? [] : [{ ...before, isHere: false }];
        }
      }),
    );
    const told = answers.flat();
    said = new Map(told.map((one) => [one.source.name, one]));
    return told;
  }

  async function follow({ stored, resting }: Seen, told: readonly Told[]): Promise<void> {
    for (const registerId of tracks.keys()) if (!stored.has(registerId)) tracks.delete(registerId);
    for (const [registerId, height] of stored) {
      const track = tracks.get(registerId) ?? new Track(registerId, height);
      tracks.set(registerId, track);
      const before = track.status;
      const isGrowing = before === 'synced' && !resting.has(registerId);
      track.observe(height, isGrowing ? height : heightOf(registerId, told));
      if (track.status !== before) await tell(track);
    }
  }

  /** Changes are told in their order: whoever hears of the last one knows how a register stands. */
  async function tell({ registerId, status }: Track): Promise<void> {
    const level = status === 'stalled' ? 'warn' : 'info';
    log[level]({ registerId, status }, 'the synchronisation of a register changed');
    await deps.onChanged(registerId, status).catch((error: unknown) => {
      log.warn({ err: error, registerId }, 'a change of synchronisation was not told');
    });
  }

  /** Who failed least comes first, so that everybody is asked in the end; then who has most. */
  async function catchUp(track: Track, told: readonly Told[]): Promise<void> {
    const heightAt = ({ heights }: Told) => heights.get(track.registerId) ?? 0;
    const failuresOf = ({ source }: Told) => track.failuresOf(source.name);
    const able = told
      .filter((one) => one.isHere && heightAt(one) > track.current)
      .toSorted((a, b) => failuresOf(a) - failuresOf(b) || heightAt(b) - heightAt(a));
    await recover(
      track,
      able.map(({ source }) => source),
      deps,
    );
    await tell(track);
  }

  return {
    async round() {
      try {
        // Sources first: what they tell may be stored by the time that this service is looked at, never the reverse.
        const told = await ask();
        await follow(await look(heights, told, deps.settle), told);
        checkedAtMs = clock.nowMs();
        const due = [...tracks.values()].filter((track) => track.isDue(checkedAtMs));
        for (const track of due) {
          track.begin(checkedAtMs);
          await tell(track);
        }
        // One after the other: a validator reads its log for one at a time.
        for (const track of due) await catchUp(track, told);
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

/** Asks the sources again and again. A source that says nothing is not waited for when the service ends. */
export function startRecovery(deps: Omit<RecoveryDeps, 'within' | 'settle'>): RecoveryJob {
  const waits = createWaits();
  let stopped = false;
  const recovery = createRecovery({
    ...deps,
    within: waits.within,
    settle: () => waits.rest(settleMs),
    onChanged: async (registerId, status) => {
      if (!stopped) await deps.onChanged(registerId, status);
    },
  });

  const loop = startPollLoop(async () => {
    await recovery.round();
    return everyMs;
  });
  return {
    ...recovery,
    wake: loop.wake,
    async stop() {
      stopped = true;
      waits.end();
      await loop.stop();
    },
  };
}

import { startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Database } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { type RecoverDeps, recover } from './recover.ts';
import type { DocketSource, FindSources } from './source.ts';
import { storedHeights } from './store.ts';
import { aggregate, type SyncEntry, type SyncStatus, Track } from './track.ts';
import { createWaits } from './waits.ts';

interface RecoveryDeps extends RecoverDeps {
  readonly database: Database<RegisterSchema>;
  readonly findSources: FindSources;
  /** Waits as long as a docket may be in flight to this service. */
  readonly settle: () => Promise<void>;
  /** Called when a register starts to recover, is synced again, or stalls. */
  readonly onChanged: (registerId: string, status: SyncStatus) => Promise<void>;
}

/** The answer of `/health/sync`. */
export interface SyncHealth {
  readonly status: SyncStatus;
  readonly registerCount: number;
  /** Registers that are not synced first, up to the limit of an answer. */
  readonly registers: readonly SyncEntry[];
  /** When the sources were last queried; 0 before the first time. */
  readonly checkedAtMs: number;
}

export interface Recovery {
  /** Queries all sources once and recovers missing dockets. Never throws. */
  round(): Promise<void>;
  health(): SyncHealth;
}

export interface RecoveryJob extends Recovery {
  /** A source may have become available. */
  wake(): void;
  stop(): Promise<void>;
}

const everyMs = 10_000;
const mostShown = 1_000;
/**
 * Validators write what they seal: a register that grows within this time lacks nothing, however far ahead they are.
 */
const settleMs = 1_000;

/** The last answer of a source. */
interface SourceReport {
  readonly source: DocketSource;
  readonly heights: ReadonlyMap<string, number>;
  readonly isReachable: boolean;
}

/** The greatest height of a register that a source reports. */
function heightOf(registerId: string, reports: readonly SourceReport[]): number {
  return Math.max(0, ...reports.map(({ heights }) => heights.get(registerId) ?? 0));
}

interface Heights {
  readonly stored: ReadonlyMap<string, number>;
  /** Registers that do not grow by themselves. */
  readonly resting: ReadonlySet<string>;
}

/** Heights of registers, read twice where a source reports more. */
async function readHeights(
  heights: () => Promise<ReadonlyMap<string, number>>,
  reports: readonly SourceReport[],
  settle: () => Promise<void>,
): Promise<Heights> {
  const first = await heights();
  const isBehind = [...first].some(([registerId, height]) => heightOf(registerId, reports) > height);
  if (!isBehind) return { stored: first, resting: new Set(first.keys()) };
  await settle();
  const stored = await heights();
  const resting = [...stored].filter(([registerId, height]) => height === first.get(registerId));
  return { stored, resting: new Set(resting.map(([registerId]) => registerId)) };
}

/**
 * Compares the registers of this service with the reports of sources. A register that is not behind costs only its
 * entry.
 */
export function createRecovery(deps: RecoveryDeps): Recovery {
  const { database, clock, log } = deps;
  const heights = () => storedHeights(database.read);
  const tracks = new Map<string, Track>();
  let lastReports: ReadonlyMap<string, SourceReport> = new Map();
  let checkedAtMs = 0;

  /** A source that does not answer keeps its previous report. */
  async function querySources(): Promise<readonly SourceReport[]> {
    const sources = await deps.findSources();
    const answers = await Promise.all(
      sources.map(async (source): Promise<SourceReport[]> => {
        try {
          return [{ source, heights: await source.heights(), isReachable: true }];
        } catch (error) {
          log.debug({ err: error, peer: source.name }, 'a source of dockets does not answer');
          const before = lastReports.get(source.name);
          return before === undefined ? [] : [{ ...before, isReachable: false }];
        }
      }),
    );
    const reports = answers.flat();
    lastReports = new Map(reports.map((one) => [one.source.name, one]));
    return reports;
  }

  async function follow({ stored, resting }: Heights, reports: readonly SourceReport[]): Promise<void> {
    for (const registerId of tracks.keys()) if (!stored.has(registerId)) tracks.delete(registerId);
    for (const [registerId, height] of stored) {
      const track = tracks.get(registerId) ?? new Track(registerId, height);
      tracks.set(registerId, track);
      const before = track.status;
      const isGrowing = before === 'synced' && !resting.has(registerId);
      track.observe(height, isGrowing ? height : heightOf(registerId, reports));
      if (track.status !== before) await publish(track);
    }
  }

  /** Publishes changes in order, so that the last one is the state of a register. */
  async function publish({ registerId, status }: Track): Promise<void> {
    const level = status === 'stalled' ? 'warn' : 'info';
    log[level]({ registerId, status }, 'the sync status of a register changed');
    await deps.onChanged(registerId, status).catch((error: unknown) => {
      log.warn({ err: error, registerId }, 'a change of sync status could not be published');
    });
  }

  /** Sources with the fewest failures first, so that all of them are tried; then those with the most dockets. */
  async function catchUp(track: Track, reports: readonly SourceReport[]): Promise<void> {
    const heightAt = ({ heights }: SourceReport) => heights.get(track.registerId) ?? 0;
    const failuresOf = ({ source }: SourceReport) => track.failuresOf(source.name);
    const usable = reports
      .filter((one) => one.isReachable && heightAt(one) > track.current)
      .toSorted((a, b) => failuresOf(a) - failuresOf(b) || heightAt(b) - heightAt(a));
    await recover(
      track,
      usable.map(({ source }) => source),
      deps,
    );
    await publish(track);
  }

  return {
    async round() {
      try {
        // Sources are queried before this service's heights are read: reported dockets may be stored meanwhile, never
        // the reverse.
        const reports = await querySources();
        await follow(await readHeights(heights, reports, deps.settle), reports);
        checkedAtMs = clock.nowMs();
        const due = [...tracks.values()].filter((track) => track.isDue(checkedAtMs));
        for (const track of due) {
          track.begin(checkedAtMs);
          await publish(track);
        }
        // One register at a time: a validator reads its log for one caller at a time.
        for (const track of due) await catchUp(track, reports);
      } catch (error) {
        log.warn({ err: error }, 'a round of recovery failed; it is repeated');
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

/** Queries the sources periodically. Shutdown does not wait for a source that does not answer. */
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

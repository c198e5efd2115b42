import { presign } from './load.ts';
import { treeCpuSeconds } from './process-cpu.ts';
import type { RawInstallation } from './raw/installation.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

/** A program under load, and the resource usage of all its processes. */
export interface Contestant {
  /** Sends all and waits until all are stored; returns transactions per second. */
  perSecond(bodies: readonly string[]): Promise<number>;
  cpuSeconds(): number;
}

export interface Figures {
  readonly perSecond: number[];
  /** CPU of all processes for one transaction. */
  readonly cpuMicros: number[];
}

export const none: Figures = { perSecond: [], cpuMicros: [] };

export interface Course {
  /** The register of a contestant by its place. */
  readonly registerOf: (place: number) => string;
  readonly perRound: number;
  readonly rounds: number;
  /** Warm-up rounds, which are not counted. */
  readonly warmUp: number;
}

/** Each of them once, beginning with another one in every round, so that the order favours none. */
function* byTurns<T>(all: readonly T[], round: number): Iterable<[number, T]> {
  const entries = [...all.entries()];
  const first = round % entries.length;
  yield* [...entries.slice(first), ...entries.slice(0, first)];
}

/** Runs every contestant once in each round. */
export async function interleave(
  contestants: readonly Contestant[],
  { registerOf, perRound, rounds, warmUp }: Course,
): Promise<readonly Figures[]> {
  // Caches and connections are those of the contestant before.
  const runUp = Math.ceil(perRound / 4);
  const figures = contestants.map((): Figures => ({ perSecond: [], cpuMicros: [] }));
  for (let n = 0; n < warmUp + rounds; n++) {
    for (const [place, contestant] of byTurns(contestants, n)) {
      await contestant.perSecond(presign(registerOf(place), runUp));
      const bodies = presign(registerOf(place), perRound);
      const before = contestant.cpuSeconds();
      const perSecond = await contestant.perSecond(bodies);
      const cpuMicros = ((contestant.cpuSeconds() - before) / perRound) * 1e6;
      if (n < warmUp) continue;
      figures[place]?.perSecond.push(perSecond);
      figures[place]?.cpuMicros.push(cpuMicros);
    }
  }
  return figures;
}

/** CPU seconds of the raw installation and its database. */
export function rawCpuSeconds(stage: Stage, raw: Pick<RawInstallation, 'pids'>): number {
  return [...raw.pids, stage.rawDatabasePid].reduce((sum, pid) => sum + treeCpuSeconds(pid), 0);
}

export function cpuRow(measure: string, ours: Figures, raw: Figures): Row {
  return { measure, ours: ours.cpuMicros, raw: raw.cpuMicros, unit: 'us', bound: { kind: 'printed' } };
}

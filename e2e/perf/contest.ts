import { presign } from './load.ts';
import { treeCpuSeconds } from './process-cpu.ts';
import type { RawInstallation } from './raw/installation.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

/** A program under load, and what all of its processes have used of the machine. */
export interface Contestant {
  /** Sends all and waits until all are stored; gives transactions per second. */
  perSecond(bodies: readonly string[]): Promise<number>;
  cpuSeconds(): number;
}

export interface Figures {
  readonly perSecond: number[];
  /** CPU of all processes for a transaction. */
  readonly cpuMicros: number[];
}

export const none: Figures = { perSecond: [], cpuMicros: [] };

export interface Course {
  readonly registerId: string;
  readonly perRound: number;
  readonly rounds: number;
  /** Rounds before those, which are not counted. */
  readonly warmUp: number;
}

/** Each of them once, another one first in every round: who comes behind whom is no advantage. */
function* byTurns<T>(all: readonly T[], round: number): Iterable<[number, T]> {
  const entries = [...all.entries()];
  const first = round % entries.length;
  yield* [...entries.slice(first), ...entries.slice(0, first)];
}

/** Every contestant after the other in each round. */
export async function interleave(
  contestants: readonly Contestant[],
  { registerId, perRound, rounds, warmUp }: Course,
): Promise<readonly Figures[]> {
  // caches and connections are not those of the contestant before
  const runUp = Math.ceil(perRound / 4);
  const figures = contestants.map((): Figures => ({ perSecond: [], cpuMicros: [] }));
  for (let n = 0; n < warmUp + rounds; n++) {
    for (const [place, contestant] of byTurns(contestants, n)) {
      await contestant.perSecond(presign(registerId, runUp));
      const bodies = presign(registerId, perRound);
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

/** What the raw installation and its database have used. */
export function rawCpuSeconds(stage: Stage, raw: RawInstallation): number {
  return [...raw.pids, stage.rawDatabasePid].reduce((sum, pid) => sum + treeCpuSeconds(pid), 0);
}

export function cpuRow(measure: string, ours: Figures, raw: Figures): Row {
  return { measure, ours: ours.cpuMicros, raw: raw.cpuMicros, unit: 'us', bound: { kind: 'printed' } };
}

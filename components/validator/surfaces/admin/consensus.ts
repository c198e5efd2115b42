import type { z } from 'zod';
import { type Counts, zeroCounts } from '../../chain/consensus/tally.ts';
import type { CollectedReport } from '../reports/collect-reports.ts';
import type { RegisterReport } from '../reports/report.ts';
import { type SetView, viewSets } from '../reports/sets.ts';
import type { ConsensusNumbers, consensusMetricsSchema } from './schemas.ts';

/**
 * The answer of `GET /api/metrics/consensus` for the registers that the caller may see. Rounds and their time come from
 * the member that counted most of them. Messages are summed over all members, since each member counts its own.
 */
export function presentConsensus(
  collected: readonly CollectedReport[],
  self: string,
  isVisible: (registerId: string) => boolean,
): z.output<typeof consensusMetricsSchema> {
  const sets = viewSets(collected, self).filter(({ registerId }) => isVisible(registerId));
  const counted = sets.map(({ members }) => sum(members.flatMap(({ report }) => report ?? [])));
  return {
    ...numbersOf(add(counted)),
    byRegister: sets.map((set, index) => ({
      ...presentRegister(set),
      ...numbersOf(counted[index] ?? zeroCounts()),
    })),
    unreachable: collected.flatMap(({ validatorId, report }) => (report === undefined ? validatorId : [])),
  };
}

function presentRegister({ registerId, status, mostAdvanced, members, quorum, operational }: SetView) {
  const { height, round, step, proposer } = mostAdvanced;
  return {
    registerId,
    status,
    height,
    round,
    step,
    proposer,
    validatorSetSize: members.length,
    quorum,
    operational,
    quorumAvailable: operational >= quorum,
    unreachable: members.flatMap(({ validatorId, report }) => (report === undefined ? validatorId : [])),
  };
}

/** All members go through the same rounds, so the member that counted the most rounds represents the register. */
function sum(reports: readonly RegisterReport[]): Counts {
  const total = add(reports.map(({ counts }) => counts));
  const [most] = reports.map(({ counts }) => counts).toSorted((a, b) => b.rounds - a.rounds);
  const { rounds, roundsFailed, decided, decidingMs } = most ?? zeroCounts();
  const evidenceCount = Math.max(0, ...reports.map(({ counts }) => counts.evidenceCount));
  return { ...total, rounds, roundsFailed, decided, decidingMs, evidenceCount };
}

function add(all: readonly Readonly<Counts>[]): Counts {
  const total = zeroCounts();
  for (const counts of all) {
    for (const name of Object.keys(total) as (keyof Counts)[]) total[name] += counts[name];
  }
  return total;
}

function numbersOf(counts: Counts): ConsensusNumbers {
  const { decided, decidingMs, ...numbers } = counts;
  return {
    ...numbers,
    averageRounds: ratio(numbers.rounds, decided),
    consensusSuccessRate: numbers.rounds === 0 ? 1 : ratio(decided, numbers.rounds),
    averageConsensusTime: ratio(decidingMs, decided),
  };
}

function ratio(value: number, by: number): number {
  return by === 0 ? 0 : Math.round((value / by) * 1000) / 1000;
}

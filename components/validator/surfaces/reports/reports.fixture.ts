import { manualClock } from '#kit/clock/clock.ts';
import { zeroCounts } from '../../chain/consensus/tally.ts';
import { WorkCounter } from '../../chain/sealing/work-counter.ts';
import type { CollectedReport } from './collect-reports.ts';
import type { RegisterReport, ValidatorReport } from './report.ts';

export const four = ['validator-0', 'validator-1', 'validator-2', 'validator-3'];
export const registerId = '0123456789abcdef0123456789abcdef';

export function registerReport(over: Partial<RegisterReport> = {}): RegisterReport {
  return {
    registerId,
    status: 'Running',
    reason: '',
    startedAtMs: 1_000,
    storedHeight: 5,
    memPoolSize: 0,
    docketsBuilt: 5,
    transactionsProcessed: 9,
    height: 5,
    round: 0,
    step: 'idle',
    proposer: 'validator-1',
    quorum: 3,
    members: four,
    decidedAtMs: 9_000,
    counts: zeroCounts(),
    rejections: [],
    volumeGap: undefined,
    evidence: [],
    work: new WorkCounter(manualClock(0)).report,
    pool: { control: 0, action: 0, bytes: 0, maxSize: 10_000, oldestAtMs: 0 },
    ...over,
  };
}

export function validatorReport(validatorId: string, registers: readonly RegisterReport[]): ValidatorReport {
  return {
    validatorId,
    version: '1',
    features: [],
    startedAtMs: 1_000,
    registers,
    heard: [],
    conditions: [],
  };
}

/** The collected reports; members without an entry are unreachable. */
export function collected(reports: Readonly<Record<string, RegisterReport | undefined>>): CollectedReport[] {
  return four.map((validatorId) => {
    const register = reports[validatorId];
    return { validatorId, report: register && validatorReport(validatorId, [register]) };
  });
}

import { compareCodeUnits } from '#core/encoding/text.ts';
import type { CollectedReport } from './collect-reports.ts';
import type { RegisterReport } from './report.ts';

/** The validator set of a register at its current height. */
export interface RegisterSet {
  readonly members: readonly string[];
  readonly quorum: number;
}

/** One member of a register and its report; undefined when it is unreachable or does not run the register. */
export interface MemberView {
  readonly validatorId: string;
  readonly reachable: boolean;
  readonly report: RegisterReport | undefined;
}

/** A register as the reports of all its members show it. */
export interface SetView {
  readonly registerId: string;
  readonly members: readonly MemberView[];
  readonly quorum: number;
  /** Members that are reachable and vote. */
  readonly operational: number;
  readonly status: SetStatus;
  /** The most advanced report: the highest docket, and of those the highest round. */
  readonly mostAdvanced: RegisterReport;
}

/** WaitingForValidators: too few members are reachable and vote. Nothing is sealed until a quorum is back. */
type SetStatus = 'Running' | 'Paused' | 'Stopped' | 'Halted' | 'WaitingForValidators';

/** Combines the reports by register, sorted by register id. The membership in this validator's own report takes precedence. */
export function viewSets(collected: readonly CollectedReport[], self: string): readonly SetView[] {
  const ordered = [
    ...collected.filter(({ validatorId }) => validatorId === self),
    ...collected.filter(({ validatorId }) => validatorId !== self),
  ];
  const sets = new Map<string, RegisterReport>();
  for (const { validatorId, report } of ordered) {
    for (const register of report?.registers ?? []) {
      const speaksForItself = register.members.includes(validatorId);
      if (speaksForItself && !sets.has(register.registerId)) sets.set(register.registerId, register);
    }
  }
  return [...sets.values()]
    .toSorted((a, b) => compareCodeUnits(a.registerId, b.registerId))
    .map((known) => viewSet(known, collected));
}

function viewSet(known: RegisterReport, collected: readonly CollectedReport[]): SetView {
  const { registerId, quorum } = known;
  const members = known.members.map((validatorId): MemberView => {
    const memberReport = collected.find((one) => one.validatorId === validatorId)?.report;
    const report = memberReport?.registers.find((one) => one.registerId === registerId);
    return { validatorId, reachable: memberReport !== undefined, report };
  });
  const reports = members.flatMap(({ report }) => report ?? []);
  const operational = reports.filter(isVoting).length;
  return {
    registerId,
    members,
    quorum,
    operational,
    status: judge(reports, operational, quorum),
    mostAdvanced: reports.reduce(moreAdvanced, known),
  };
}

/**
 * Paused members vote so that the others make progress. Stopped and halted members do not vote, nor do members that
 * paused themselves, which have a reason.
 */
export function isVoting({ status, reason }: Pick<RegisterReport, 'status' | 'reason'>): boolean {
  if (status === 'Paused') return reason === '';
  return status === 'Running' || status === 'WaitingForValidators';
}

function judge(reports: readonly RegisterReport[], operational: number, quorum: number): SetStatus {
  const some = (status: string) => reports.some((report) => report.status === status);
  if (some('Halted')) return 'Halted';
  if (reports.every(({ status }) => status === 'Stopped')) return 'Stopped';
  if (reports.every(({ status, reason }) => status === 'Paused' && reason !== '')) return 'Paused';
  if (operational < quorum) return 'WaitingForValidators';
  if (some('Running')) return 'Running';
  return some('WaitingForValidators') ? 'WaitingForValidators' : 'Paused';
}

function moreAdvanced(a: RegisterReport, b: RegisterReport): RegisterReport {
  if (a.height !== b.height) return a.height > b.height ? a : b;
  return b.round > a.round ? b : a;
}

import type { z } from 'zod';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import type { CollectedReport } from '../reports/collect-reports.ts';
import { equivocationConditions } from '../reports/conditions.ts';
import { presentRejections } from '../reports/rejections.ts';
import type { RegisterReport } from '../reports/report.ts';
import { isVoting, type MemberView, type SetView, viewSets } from '../reports/sets.ts';
import type { validationStatusSchema } from './schemas.ts';

/** Formats a duration as `d.hh:mm:ss`, the form of the specification's status answer. */
export function uptimeText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (value: number) => String(value).padStart(2, '0');
  const days = Math.floor(seconds / 86_400);
  return `${days}.${two(Math.floor(seconds / 3600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** The answering validator and the time of the answer. */
interface StatusContext {
  readonly self: string;
  readonly nowMs: number;
}

/** The answer of `GET /api/admin/validation/status`: every register and every validator, reachable or not. */
export function presentStatus(
  collected: readonly CollectedReport[],
  { self, nowMs }: StatusContext,
): ReadonlyDeep<z.output<typeof validationStatusSchema>> {
  return {
    registers: viewSets(collected, self).map((set) => presentSet(set, { self, nowMs })),
    validators: collected.map(({ validatorId, report }) => ({
      validatorId,
      reachable: report !== undefined,
      version: report?.version ?? null,
      features: report?.features ?? [],
      uptime: report === undefined ? null : uptimeText(nowMs - report.startedAtMs),
      lastHeardAt: lastHeardAt(collected, validatorId, nowMs),
      conditions: (report?.conditions ?? []).map(({ sinceMs, ...condition }) => ({
        ...condition,
        since: instant(sinceMs),
      })),
    })),
  };
}

/** The latest time at which any validator heard this one: now when it answers. */
function lastHeardAt(
  collected: readonly CollectedReport[],
  validatorId: string,
  nowMs: number,
): string | null {
  const isHere = collected.some((one) => one.validatorId === validatorId && one.report !== undefined);
  const heard = collected.flatMap(({ report }) => report?.heard ?? []);
  const times = heard.flatMap((one) => (one.validatorId === validatorId ? one.heardAtMs : []));
  const latestMs = isHere ? nowMs : Math.max(0, ...times);
  return instant(latestMs);
}

function presentSet(set: SetView, { self, nowMs }: StatusContext) {
  const reports = set.members.flatMap(({ report }) => report ?? []);
  const most = (of: (report: RegisterReport) => number) => Math.max(0, ...reports.map(of));
  const { height, round, step, proposer } = set.mostAdvanced;
  const memberEvidence = set.members.map(({ validatorId, report }) => ({
    isOwn: validatorId === self,
    evidence: report?.evidence ?? [],
  }));
  const conditions = equivocationConditions(memberEvidence, set.members.length);
  return {
    registerId: set.registerId,
    status: set.status,
    lastDocketNumber: most((report) => report.storedHeight) - 1,
    memPoolSize: most((report) => report.memPoolSize),
    uptime: uptimeText(most((report) => nowMs - report.startedAtMs)),
    docketsBuilt: most((report) => report.docketsBuilt),
    transactionsProcessed: most((report) => report.transactionsProcessed),
    role: roleOf(set.members.find((member) => member.validatorId === self)),
    height,
    round,
    step,
    proposer,
    validatorSetSize: set.members.length,
    quorum: set.quorum,
    operational: set.operational,
    quorumAvailable: set.operational >= set.quorum,
    lastCommitAt: instant(most((report) => report.decidedAtMs)),
    members: set.members.map((member) => ({
      ...presentMember(member),
      conditions: conditions.ofMember(member.validatorId),
    })),
    conditions: conditions.ofRegister,
    rejections: presentRejections(reports),
  };
}

function roleOf(member: MemberView | undefined): 'proposer' | 'voter' | 'observer' {
  if (member?.report === undefined || !isVoting(member.report)) return 'observer';
  return member.report.proposer === member.validatorId ? 'proposer' : 'voter';
}

function presentMember(member: MemberView) {
  const { validatorId, reachable, report } = member;
  if (report === undefined) return { validatorId, reachable };
  const { status, reason, height, round, step, storedHeight, memPoolSize, volumeGap: gap } = report;
  return {
    validatorId,
    reachable,
    status,
    ...(reason === '' ? {} : { reason }),
    ...(gap && { volumeBehind: { held: gap.held, chain: gap.chain, detectedAt: instant(gap.atMs) } }),
    role: roleOf(member),
    height,
    round,
    step,
    lastDocketNumber: storedHeight - 1,
    memPoolSize,
  };
}

function instant(ms: number): string | null {
  return ms === 0 ? null : new Date(ms).toISOString();
}

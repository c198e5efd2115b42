import { stampTime } from '../../api/conditions.ts';
import { spiffeId, validatorId } from '../../api/names.ts';
import { MAX_MEMBER_REGISTERS, type MEMBER_PHASES, type ValidatorSet } from '../../api/validator-set.ts';
import { hashOf } from '../../kube/compare.ts';
import type { MemberFacts, RegisterReport, SetFacts } from './facts.ts';
import { isCaughtUp } from './quorum.ts';
import type { ScalingStep } from './scaling.ts';

type Phase = (typeof MEMBER_PHASES)[number];
export type MemberStatus = NonNullable<ValidatorSet['status']['members']>[number];

/** Phases of members with a key. */
const phasesWithKey = new Set<Phase>([
  'KeyReady',
  'Registered',
  'PendingApproval',
  'Syncing',
  'Active',
  'Equivocated',
]);

/** Ids of members with evidence of equivocation. One report is enough, because evidence is a proof by itself. */
export function equivocators(members: readonly MemberFacts[]): ReadonlySet<string> {
  const evidence = members.flatMap(({ report }) => report?.registers.flatMap((each) => each.evidence) ?? []);
  return new Set(evidence.flatMap(({ validatorIds }) => validatorIds));
}

/** Phase of a member in the registers that it reports. */
function phaseInRegisters(
  reports: readonly RegisterReport[],
  bound: ReadonlySet<string>,
  maxBehind: number,
): Phase {
  if (reports.some(({ membership }) => membership === 'Suspended')) return 'Suspended';
  if (reports.some(({ membership }) => membership === 'Pending')) return 'PendingApproval';
  const memberOf = reports.filter(({ isMember }) => isMember);
  if (memberOf.length === 0) return 'KeyReady';
  const isDone = (each: RegisterReport) => each.status === 'Stopped' || isCaughtUp(each, maxBehind);
  if (!memberOf.every(isDone)) return 'Syncing';
  const joined = new Set(memberOf.map(({ registerId }) => registerId));
  return [...bound].every((each) => joined.has(each)) ? 'Active' : 'Registered';
}

interface StatusContext {
  readonly facts: SetFacts;
  readonly scaling: ScalingStep;
  readonly equivocating: ReadonlySet<string>;
  readonly bound: ReadonlySet<string>;
  readonly before: ReadonlyMap<string, MemberStatus>;
}

function phaseOf({ name, report }: MemberFacts, context: StatusContext): Phase {
  const { facts, scaling, equivocating, bound, before } = context;
  if (equivocating.has(validatorId(name))) return 'Equivocated';
  if (facts.set.spec.suspend) return 'Suspended';
  if (scaling.leaving === name) return 'Draining';
  if (report !== undefined) {
    return phaseInRegisters(report.registers, bound, facts.set.spec.update.maxBehindDockets);
  }
  const known = before.get(name)?.phase;
  // a silent member has not lost its key
  return known !== undefined && phasesWithKey.has(known) ? known : 'Provisioning';
}

function registersOf({ report }: MemberFacts): MemberStatus['registers'] {
  return report?.registers
    .toSorted((left, right) => right.behind - left.behind || (left.registerId < right.registerId ? -1 : 1))
    .slice(0, MAX_MEMBER_REGISTERS)
    .map(({ registerId, height, round, role, behind }) => ({ registerId, height, round, role, behind }));
}

function memberStatus(member: MemberFacts, context: StatusContext): MemberStatus {
  const { name, ordinal, pod, report, answeredAtMs } = member;
  const before = context.before.get(name);
  const lastHeartbeat = answeredAtMs === undefined ? before?.lastHeartbeat : stampTime(answeredAtMs);
  const status = {
    name,
    ordinal,
    validatorId: validatorId(name),
    did: report?.did ?? before?.did,
    address: report?.walletAddress ?? before?.address,
    publicKey: report?.publicKey ?? before?.publicKey,
    spiffeId: spiffeId(context.facts.installation, validatorId(name)),
    phase: phaseOf(member, context),
    ready: pod?.isReady === true && !pod.isTerminating && report !== undefined,
    version: report?.version ?? before?.version,
    lastHeartbeat: lastHeartbeat,
    registers: registersOf(member) ?? before?.registers,
  };
  // a new heartbeat alone does not justify a write
  const isNews = hashOf({ ...status, lastHeartbeat: '' }) !== hashOf({ ...before, lastHeartbeat: '' });
  return isNews ? status : { ...status, lastHeartbeat: before?.lastHeartbeat };
}

/** Members for the status, by ordinal. Members of a suspended set are kept. */
export function memberStatuses(facts: SetFacts, scaling: ScalingStep): readonly MemberStatus[] {
  const { set, members, registers } = facts;
  const before = new Map((set.status.members ?? []).map((each) => [each.name, each]));
  const bound = registers.flatMap(({ registerId, isDeleting }) => (isDeleting ? [] : (registerId ?? [])));
  const context = { facts, scaling, equivocating: equivocators(members), bound: new Set(bound), before };
  const now = members.map((each) => memberStatus(each, context));
  const names = new Set(now.map(({ name }) => name));
  // listed until their principals are revoked
  const gone = [...before.values()].filter(({ name }) => !names.has(name));
  return [
    ...now,
    ...gone.map((each) => ({ ...each, phase: 'Removed' as const, ready: false, registers: [] })),
  ];
}

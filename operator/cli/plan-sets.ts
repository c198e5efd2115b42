import { faultTolerance, quorum } from '#core/ledger/consensus.ts';
import { podName, validatorId } from '../api/names.ts';
import type { ValidatorSet } from '../api/validator-set.ts';
import { hashOf } from '../kube/compare.ts';
import type { MemberFacts, MemberReport, SetFacts } from '../plan/validator-set/facts.ts';
import { planRollout } from '../plan/validator-set/rollout.ts';
import type { Entry, Step } from './entry.ts';
import { keyOf } from './objects.ts';

const LIVE = 'live';
const NEXT = 'next';
/** Age that passes every gate with a waiting time. */
const longMs = 3_600_000;

/** The plan of a set: added, replaced and removed pods, in order. */
export function planSet(desired: ValidatorSet, live: ValidatorSet | undefined, nowMs: number): Entry {
  const { replicas } = desired.spec;
  const entry = { kind: 'ValidatorSet', key: keyOf(desired) };
  if (live === undefined) {
    const summary = `Start ${range(desired, 0, replicas)}`;
    return { ...entry, steps: [{ summary, disruption: 'none' }], notes: [arithmetic(undefined, replicas)] };
  }
  const refused = whyRefused(desired, live);
  if (refused !== undefined) return { ...entry, steps: [], notes: [], refused };
  const { replicas: from } = live.spec;
  const sized: readonly Step[] = sizeSteps(desired, live);
  const rollout = isTemplateChanged(desired, live)
    ? rollSteps(desired, live, nowMs)
    : { steps: [], notes: [] };
  const suspension = suspensionSteps(desired, live);
  const steps = [...suspension, ...growthSteps(desired, live), ...sized, ...rollout.steps];
  const notes = [...(from === replicas ? [] : [arithmetic(from, replicas)]), ...rollout.notes];
  return { ...entry, steps, notes };
}

function arithmetic(from: number | undefined, to: number): string {
  const numbers = (size: number) => `quorum ${quorum(size)}, tolerates ${faultTolerance(size)}`;
  const after = `${to} members: ${numbers(to)}`;
  return from === undefined ? after : `${from} members: ${numbers(from)} -> ${after}`;
}

function range({ metadata }: ValidatorSet, from: number, to: number): string {
  const first = podName(metadata.name, from);
  return to - from === 1 ? first : `${first} to ${podName(metadata.name, to - 1)}`;
}

function whyRefused(desired: ValidatorSet, live: ValidatorSet): string | undefined {
  const { storageClassName } = desired.spec.storage;
  if (storageClassName === live.spec.storage.storageClassName) return undefined;
  return 'storage.storageClassName cannot be changed; for other volumes create another ValidatorSet';
}

function sizeSteps(desired: ValidatorSet, live: ValidatorSet): readonly Step[] {
  const { replicas: to } = desired.spec;
  const { replicas: from } = live.spec;
  if (to > from) return [{ summary: `Start ${range(desired, from, to)}`, disruption: 'none' }];
  return Array.from({ length: from - to }, (_, step) => {
    const name = podName(desired.metadata.name, from - 1 - step);
    const summary = `Stop ${name}, after every register has removed it from its list and it has drained; its volume is kept`;
    return { summary, disruption: 'none' as const };
  });
}

function growthSteps(desired: ValidatorSet, live: ValidatorSet): readonly Step[] {
  const { size } = desired.spec.storage;
  if (size === live.spec.storage.size) return [];
  return [{ summary: `Grow every volume: ${live.spec.storage.size} -> ${size}`, disruption: 'none' }];
}

function suspensionSteps(desired: ValidatorSet, live: ValidatorSet): readonly Step[] {
  if (desired.spec.suspend === live.spec.suspend) return [];
  return desired.spec.suspend
    ? [{ summary: 'Stop every member; volumes and keys are kept', disruption: 'sealing-stops' }]
    : [{ summary: 'Start every member again', disruption: 'none' }];
}

/** Hash of the members of the spec that are in the pod template. */
function templateOf({ spec }: ValidatorSet): string {
  const { replicas: _, suspend: __, registration: ___, storage: ____, update: _____, ...template } = spec;
  return hashOf(template);
}

function isTemplateChanged(desired: ValidatorSet, live: ValidatorSet): boolean {
  return templateOf(desired) !== templateOf(live);
}

/** Simulates the rollout of a set, one pod after the other. */
function rollSteps(desired: ValidatorSet, live: ValidatorSet, nowMs: number) {
  const { strategy, paused } = desired.spec.update;
  if (strategy === 'OnDelete') {
    return {
      steps: [],
      notes: ['The pods are outdated; with update.strategy OnDelete they are replaced when you delete them'],
    };
  }
  let facts = factsOf({ ...desired, status: live.status }, live.spec.replicas, nowMs);
  const steps: Step[] = [];
  for (let count = 0; count < facts.members.length; count += 1) {
    const { next, blocked, outdated } = planRollout(facts);
    if (blocked !== undefined && !paused) {
      return {
        steps,
        notes: [`The rollout stops: ${blocked.message}; ${outdated.join(', ')} are not replaced`],
      };
    }
    if (next === undefined) break;
    const { name } = next.member;
    steps.push({ summary: `Replace ${name}: ${next.proof}`, disruption: replaces(facts) });
    facts = { ...facts, members: facts.members.map((each) => (each.name === name ? renewed(each) : each)) };
  }
  return { steps, notes: paused ? ['update.paused is true: no pod is replaced'] : [] };
}

function replaces({ members }: SetFacts): Step['disruption'] {
  return members.length === 1 ? 'sealing-stops' : 'none';
}

function renewed(member: MemberFacts): MemberFacts {
  return member.pod === undefined ? member : { ...member, pod: { ...member.pod, revision: NEXT } };
}

/** Facts of a set, derived from the status of its object. */
function factsOf(set: ValidatorSet, replicas: number, nowMs: number): SetFacts {
  const members = Array.from({ length: replicas }, (_, ordinal) => memberOf(set, ordinal, nowMs));
  const statefulSet = { uid: '', replicas, updateRevision: NEXT };
  return { set, installation: '', nowMs, statefulSet, members, registers: [] };
}

function memberOf(set: ValidatorSet, ordinal: number, nowMs: number): MemberFacts {
  const name = podName(set.metadata.name, ordinal);
  const status = set.status.members?.find((each) => each.name === name);
  const isReady = status?.ready !== false;
  const pod = {
    uid: name,
    isReady,
    readySinceMs: nowMs - longMs,
    isTerminating: false,
    isBroken: false,
    revision: LIVE,
    isForced: false,
  };
  const report = isReady ? reportOf(set, name, nowMs) : undefined;
  return { ordinal, name, pod, ...(report === undefined ? {} : { report, answeredAtMs: nowMs }) };
}

function reportOf({ status }: ValidatorSet, name: string, nowMs: number): MemberReport {
  const all = status.members ?? [];
  const own = all.find((each) => each.name === name);
  const registers = (own?.registers ?? []).map(
    ({ registerId, height = 0, round = 0, role = 'voter', behind = 0 }) => {
      const members = all
        .filter((each) => each.registers?.some((other) => other.registerId === registerId))
        .map((each) => validatorId(each.name));
      return {
        registerId,
        status: 'Running',
        membership: 'Active',
        isMember: true,
        height,
        round,
        role,
        isProposer: role === 'proposer',
        quorum: quorum(members.length),
        members,
        behind,
        roots: [],
        evidence: [],
      };
    },
  );
  return {
    validatorId: validatorId(name),
    version: own?.version ?? '',
    protocolVersion: 1,
    drain: { state: 'None' },
    conditions: [],
    heard: all.map((each) => ({
      validatorId: validatorId(each.name),
      heardAt: new Date(nowMs).toISOString(),
    })),
    registers,
  };
}

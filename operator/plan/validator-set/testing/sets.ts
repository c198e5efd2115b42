import { quorum } from '#core/ledger/consensus.ts';
import { API_GROUP_VERSION, podName, validatorId } from '../../../api/names.ts';
import { parseValidatorSet, type ValidatorSet } from '../../../api/validator-set.ts';
import type { MemberFacts, MemberReport, PodFacts, RegisterReport, SetFacts } from '../facts.ts';

export const NOW_MS = Date.UTC(2026, 0, 1);
export const REGISTER = '0123456789abcdef0123456789abcdef';

/** A set called `main` in namespace `acme`. */
export function makeSet(
  spec: object = {},
  more: { readonly status?: object; readonly metadata?: object } = {},
): ValidatorSet {
  return parseValidatorSet({
    apiVersion: API_GROUP_VERSION,
    kind: 'ValidatorSet',
    metadata: {
      name: 'main',
      namespace: 'acme',
      uid: '11111111-2222-3333-4444-555555555555',
      generation: 1,
      ...more.metadata,
    },
    spec,
    ...(more.status === undefined ? {} : { status: more.status }),
  });
}

export function makePod(ordinal: number, changes: Partial<PodFacts> = {}): PodFacts {
  return {
    uid: `uid-${ordinal}`,
    isReady: true,
    readySinceMs: NOW_MS - 3_600_000,
    isTerminating: false,
    isBroken: false,
    revision: 'new',
    node: `node-${ordinal}`,
    address: `10.0.0.${ordinal}`,
    isForced: false,
    ...changes,
  };
}

export function makeRegister(size: number, changes: Partial<RegisterReport> = {}): RegisterReport {
  return {
    registerId: REGISTER,
    status: 'Running',
    membership: 'Active',
    isMember: true,
    height: 10,
    round: 0,
    role: 'voter',
    isProposer: false,
    quorum: quorum(size),
    members: Array.from({ length: size }, (_, each) => validatorId(podName('main', each))),
    behind: 0,
    roots: [{ height: 10, root: 'root' }],
    evidence: [],
    ...changes,
  };
}

export function makeReport(ordinal: number, registers: readonly RegisterReport[]): MemberReport {
  return {
    validatorId: validatorId(podName('main', ordinal)),
    publicKey: 'key',
    version: '0.1.0',
    protocolVersion: 1,
    drain: { state: 'None' },
    conditions: [],
    heard: [],
    registers,
  };
}

/** A member that runs, answers and seals one register of `size` members. */
export function makeMember(ordinal: number, size: number, changes: Partial<MemberFacts> = {}): MemberFacts {
  return {
    ordinal,
    name: podName('main', ordinal),
    pod: makePod(ordinal),
    report: makeReport(ordinal, [makeRegister(size)]),
    answeredAtMs: NOW_MS,
    ...changes,
  };
}

/** A healthy set of `size` members that seal one register. */
export function makeFacts(size: number, changes: Partial<SetFacts> = {}): SetFacts {
  return {
    set: makeSet({ replicas: size }),
    installation: 'acme.chancery.local',
    nowMs: NOW_MS,
    statefulSet: { uid: 'sts', replicas: size, updateRevision: 'new', claimSize: '1Gi' },
    members: Array.from({ length: size }, (_, ordinal) => makeMember(ordinal, size)),
    registers: [{ name: 'ledger', registerId: REGISTER, isDeleting: false }],
    ...changes,
  };
}

/** Facts with some members changed. */
export function withMembers(
  facts: SetFacts,
  change: (member: MemberFacts) => Partial<MemberFacts>,
): SetFacts {
  return { ...facts, members: facts.members.map((each) => ({ ...each, ...change(each) })) };
}

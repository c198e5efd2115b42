import type { ManagedKind } from './names.ts';
import type { Condition } from './object.ts';
import type { Reason } from './reasons.ts';

export interface ConditionMeaning {
  /** What it says when it is True. */
  readonly meaning: string;
  readonly kinds: readonly ManagedKind[];
  /** Whether True is the good state. */
  readonly positive: boolean;
  /** `while-true`: left out when it does not hold (kstatus); `always`: stated either way. */
  readonly shown: 'always' | 'while-true';
}

const every: readonly ManagedKind[] = ['Register', 'Tenant', 'ValidatorSet'];

/** Every condition type, in the order in which a status lists them (custom-resources.md, notes/operator.md 3.4). */
export const CONDITIONS = {
  Ready: { meaning: 'All is as wanted.', kinds: every, positive: true, shown: 'always' },
  Reconciling: {
    meaning: 'A change is being carried out.',
    kinds: every,
    positive: false,
    shown: 'while-true',
  },
  Stalled: {
    meaning: 'Nothing goes on until somebody acts.',
    kinds: every,
    positive: false,
    shown: 'while-true',
  },
  Degraded: {
    meaning: 'It works, with less than was wanted.',
    kinds: ['Register', 'ValidatorSet'],
    positive: false,
    shown: 'always',
  },
  QuorumHealthy: {
    meaning: 'Enough members answer and are caught up to seal in every register.',
    kinds: ['ValidatorSet'],
    positive: true,
    shown: 'always',
  },
  FaultTolerant: {
    meaning: 'At least one member may fail.',
    kinds: ['ValidatorSet'],
    positive: true,
    shown: 'always',
  },
  StorageResizing: {
    meaning: 'Volumes are growing.',
    kinds: ['ValidatorSet'],
    positive: false,
    shown: 'while-true',
  },
  EquivocationDetected: {
    meaning: 'A member signed two different things at one place; its key must not be trusted.',
    kinds: ['ValidatorSet'],
    positive: false,
    shown: 'while-true',
  },
  AttestationsComplete: {
    meaning: 'Everybody in the first roster has signed.',
    kinds: ['Register'],
    positive: true,
    shown: 'always',
  },
  GenesisSealed: { meaning: 'Docket 0 is sealed.', kinds: ['Register'], positive: true, shown: 'always' },
  QuorumAvailable: {
    meaning: 'Enough validators of the register answer to seal.',
    kinds: ['Register'],
    positive: true,
    shown: 'always',
  },
  Synced: {
    meaning: 'The register service has every docket.',
    kinds: ['Register'],
    positive: true,
    shown: 'always',
  },
  PolicyInSync: {
    meaning: 'The policy that holds is the wanted one.',
    kinds: ['Register'],
    positive: true,
    shown: 'always',
  },
  DevModeInSync: {
    meaning: 'The development mode is the wanted one.',
    kinds: ['Register'],
    positive: true,
    shown: 'always',
  },
  Halted: {
    meaning: 'The register takes nothing until somebody has looked at it.',
    kinds: ['Register'],
    positive: false,
    shown: 'while-true',
  },
} as const satisfies Readonly<Record<string, ConditionMeaning>>;

export type ConditionType = keyof typeof CONDITIONS;

const ORDER: readonly string[] = Object.keys(CONDITIONS);
const MAX_MESSAGE = 4096;

/** What a reconcile found about one type. */
export interface Finding {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: Reason;
  readonly message: string;
}

/** When and about what was judged. */
export interface Stamp {
  /** metadata.generation of the object. */
  readonly generation: number;
  /** RFC 3339 in whole seconds, as Kubernetes writes times. */
  readonly now: string;
}

/** The time of a stamp from milliseconds of the epoch. */
export function stampTime(nowMs: number): string {
  return new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z');
}

function place(type: string): number {
  const found = ORDER.indexOf(type);
  return found < 0 ? ORDER.length : found;
}

function byPlace(left: Condition, right: Condition): number {
  return place(left.type) - place(right.type) || (left.type < right.type ? -1 : 1);
}

/** A condition that says the finding; the time of the last transition stays while the status does. */
function restate(before: Condition | undefined, finding: Finding, { generation, now }: Stamp): Condition {
  const { type, status, reason, message } = finding;
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
  const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 3)}...` : message;
  return { type, status, observedGeneration: generation, lastTransitionTime, reason, message: text };
}

/**
 * Conditions with one finding written into them. A type that is shown only while true is removed when it is not.
 * Types of other programs stay.
 */
export function setCondition(
  conditions: readonly Condition[],
  finding: Finding,
  stamp: Stamp,
): readonly Condition[] {
  const others = conditions.filter((each) => each.type !== finding.type);
  if (CONDITIONS[finding.type].shown === 'while-true' && finding.status !== 'True') return others;
  const before = conditions.find((each) => each.type === finding.type);
  return [...others, restate(before, finding, stamp)].sort(byPlace);
}

/** Conditions with every finding written into them, in order. */
export function setConditions(
  conditions: readonly Condition[],
  findings: readonly Finding[],
  stamp: Stamp,
): readonly Condition[] {
  return findings.reduce((found, finding) => setCondition(found, finding, stamp), conditions);
}

/** The condition of a type; undefined when it is not stated. */
export function findCondition(
  conditions: readonly Condition[] | undefined,
  type: ConditionType,
): Condition | undefined {
  return conditions?.find((each) => each.type === type);
}

/** How a reconcile ended, as kstatus knows it. */
export interface Outcome {
  readonly state: 'ready' | 'reconciling' | 'stalled';
  readonly reason: Reason;
  readonly message: string;
}

/**
 * Ready, Reconciling and Stalled of an outcome: never both of the latter, and neither when all is as wanted
 * (notes/operator.md 3.4).
 */
export function outcomeFindings({ state, reason, message }: Outcome): readonly Finding[] {
  const status = (holds: boolean): 'True' | 'False' => (holds ? 'True' : 'False');
  return [
    { type: 'Ready', status: status(state === 'ready'), reason, message },
    { type: 'Reconciling', status: status(state === 'reconciling'), reason, message },
    { type: 'Stalled', status: status(state === 'stalled'), reason, message },
  ];
}

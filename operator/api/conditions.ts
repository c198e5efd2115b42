import type { ManagedKind } from './names.ts';
import type { Condition } from './object.ts';
import type { Reason } from './reasons.ts';

interface ConditionMeaning {
  /** Meaning of status True. */
  readonly meaning: string;
  readonly kinds: readonly ManagedKind[];
  /** Whether True is the good state. */
  readonly positive: boolean;
  /** `while-true`: present only with status True, as kstatus expects; `always`: present with any status. */
  readonly shown: 'always' | 'while-true';
}

const every: readonly ManagedKind[] = ['Register', 'Tenant', 'ValidatorSet'];

/** Every condition type, in the order in which a status lists them. */
export const CONDITIONS = {
  Ready: { meaning: 'The object matches its spec.', kinds: every, positive: true, shown: 'always' },
  Reconciling: {
    meaning: 'A change is being carried out.',
    kinds: every,
    positive: false,
    shown: 'while-true',
  },
  Stalled: {
    meaning: 'Reconciliation has stopped until a person acts.',
    kinds: every,
    positive: false,
    shown: 'while-true',
  },
  Degraded: {
    meaning: 'The object works with less than its spec asks for.',
    kinds: ['Register', 'ValidatorSet'],
    positive: false,
    shown: 'always',
  },
  QuorumHealthy: {
    meaning: 'Enough members answer and are caught up to seal dockets in every register.',
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
    meaning: 'A member signed two different messages for one position; its key must not be trusted.',
    kinds: ['ValidatorSet'],
    positive: false,
    shown: 'while-true',
  },
  AttestationsComplete: {
    meaning: 'Every member of the first roster has signed.',
    kinds: ['Register'],
    positive: true,
    shown: 'always',
  },
  GenesisSealed: { meaning: 'Docket 0 is sealed.', kinds: ['Register'], positive: true, shown: 'always' },
  QuorumAvailable: {
    meaning: 'Enough validators of the register answer to seal dockets.',
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
    meaning: 'The policy in force is the desired one.',
    kinds: ['Register'],
    positive: true,
    shown: 'always',
  },
  DevModeInSync: {
    meaning: 'The development mode is the desired one.',
    kinds: ['Register'],
    positive: true,
    shown: 'always',
  },
  Halted: {
    meaning: 'The register accepts nothing until an operator resumes it.',
    kinds: ['Register'],
    positive: false,
    shown: 'while-true',
  },
} as const satisfies Readonly<Record<string, ConditionMeaning>>;

export type ConditionType = keyof typeof CONDITIONS;

const ORDER: readonly string[] = Object.keys(CONDITIONS);
const MAX_MESSAGE = 4096;

/** New content of one condition. */
export interface ConditionUpdate {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: Reason;
  readonly message: string;
}

/** Time and generation of a judgement. */
interface Stamp {
  /** metadata.generation of the object. */
  readonly generation: number;
  /** RFC 3339 in whole seconds, as Kubernetes writes times. */
  readonly now: string;
}

/** The time of a stamp from milliseconds of the epoch. */
export function stampTime(nowMs: number): string {
  return new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z');
}

function orderOf(type: string): number {
  const found = ORDER.indexOf(type);
  return found < 0 ? ORDER.length : found;
}

function byOrder(left: Condition, right: Condition): number {
  return orderOf(left.type) - orderOf(right.type) || (left.type < right.type ? -1 : 1);
}

/** The condition of an update. The time of the last transition changes only with the status. */
function toCondition(
  before: Condition | undefined,
  update: ConditionUpdate,
  { generation, now }: Stamp,
): Condition {
  const { type, status, reason, message } = update;
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
  const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 3)}...` : message;
  return { type, status, observedGeneration: generation, lastTransitionTime, reason, message: text };
}

/**
 * Applies one update to a list of conditions. A type that is shown only while true is removed when it is not true.
 * Condition types of other programs stay.
 */
export function setCondition(
  conditions: readonly Condition[],
  update: ConditionUpdate,
  stamp: Stamp,
): readonly Condition[] {
  const others = conditions.filter((each) => each.type !== update.type);
  if (CONDITIONS[update.type].shown === 'while-true' && update.status !== 'True') return others;
  const before = conditions.find((each) => each.type === update.type);
  return [...others, toCondition(before, update, stamp)].sort(byOrder);
}

/** Applies several updates in order. */
export function setConditions(
  conditions: readonly Condition[],
  updates: readonly ConditionUpdate[],
  stamp: Stamp,
): readonly Condition[] {
  return updates.reduce((found, update) => setCondition(found, update, stamp), conditions);
}

/** The condition of a type; undefined when it is absent. */
export function findCondition(
  conditions: readonly Condition[] | undefined,
  type: ConditionType,
): Condition | undefined {
  return conditions?.find((each) => each.type === type);
}

/** Result of a reconcile in the terms of kstatus. */
export interface Outcome {
  readonly state: 'ready' | 'reconciling' | 'stalled';
  readonly reason: Reason;
  readonly message: string;
}

/**
 * Ready, Reconciling and Stalled of an outcome. Reconciling and Stalled are never both true, and neither is true when
 * the object is ready, as kstatus requires.
 */
export function outcomeUpdates({ state, reason, message }: Outcome): readonly ConditionUpdate[] {
  const status = (holds: boolean): 'True' | 'False' => (holds ? 'True' : 'False');
  return [
    { type: 'Ready', status: status(state === 'ready'), reason, message },
    { type: 'Reconciling', status: status(state === 'reconciling'), reason, message },
    { type: 'Stalled', status: status(state === 'stalled'), reason, message },
  ];
}

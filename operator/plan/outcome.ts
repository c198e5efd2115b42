import type { ConditionUpdate, Outcome } from '../api/conditions.ts';

/** The judgement of a plan about an object, besides its steps. */
export interface Judgement<Status> {
  readonly outcome: Outcome;
  /** Conditions besides Ready, Reconciling and Stalled. */
  readonly conditionUpdates: readonly ConditionUpdate[];
  /** Members of the status besides conditions and observedGeneration. */
  readonly status: Status;
}

/** Effect of a step on users. */
export type Disruption = 'none' | 'sign-in-stops' | 'sealing-stops' | 'data-deleted';

/** The object matches its spec. */
export function ready(message: string): Outcome {
  return { state: 'ready', reason: 'Reconciled', message };
}

/** A change is in progress, or the object waits for something that needs no person. */
export function reconciling(reason: Outcome['reason'], message: string): Outcome {
  return { state: 'reconciling', reason, message };
}

/** A person must act. */
export function stalled(reason: Outcome['reason'], message: string): Outcome {
  return { state: 'stalled', reason, message };
}

/** Members of a record that are not undefined. */
export function defined<T extends Readonly<Record<string, unknown>>>(
  members: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

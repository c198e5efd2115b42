import type { ConditionUpdate, Outcome } from '../api/conditions.ts';

/** What a plan says about an object, besides what is to be done. */
export interface Judgement<Status> {
  readonly outcome: Outcome;
  /** Conditions besides Ready, Reconciling and Stalled. */
  readonly conditionUpdates: readonly ConditionUpdate[];
  /** Members of the status besides conditions and observedGeneration. */
  readonly status: Status;
}

/** What a step does to those who use the thing. */
export type Disruption = 'none' | 'sign-in-stops' | 'sealing-stops' | 'data-goes';

/** All is as wanted. */
export function ready(message: string): Outcome {
  return { state: 'ready', reason: 'Reconciled', message };
}

/** A change is being carried out, or something is waited for that comes by itself. */
export function reconciling(reason: Outcome['reason'], message: string): Outcome {
  return { state: 'reconciling', reason, message };
}

/** Nothing goes on until somebody acts. */
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

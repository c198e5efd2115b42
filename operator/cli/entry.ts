import type { Disruption } from '../plan/outcome.ts';

/** One step of a plan. */
export interface Step {
  readonly summary: string;
  readonly disruption: Disruption;
}

/** The plan of one object. */
export interface Entry {
  readonly kind: string;
  /** `namespace/name`. */
  readonly key: string;
  /** In order. */
  readonly steps: readonly Step[];
  /** Numbers and reasons, one per line. */
  readonly notes: readonly string[];
  /** Why the desired state cannot be reached. */
  readonly refused?: string;
}

import type { Disruption } from '../plan/outcome.ts';

/** One thing that will be done. */
export interface Step {
  readonly summary: string;
  readonly disruption: Disruption;
}

/** What becomes of one object. */
export interface Entry {
  readonly kind: string;
  /** `namespace/name`. */
  readonly key: string;
  /** In order. */
  readonly steps: readonly Step[];
  /** Numbers and reasons, one a line. */
  readonly notes: readonly string[];
  /** Why it does not become what the file wants. */
  readonly refused?: string;
}

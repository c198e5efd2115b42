import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Workload } from '#kit/workload/workload.ts';

/** What every client of another service needs. */
export interface PeerOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  /** The token of this service. */
  readonly token: () => Promise<string>;
}

import type { Timing } from '#kit/clock/timing.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Api } from '../../kube/api.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import type { Installations } from '../../platform/installations.ts';
import type { Caches } from './caches.ts';

/** Dependencies of every controller. */
export interface Dependencies {
  readonly runtime: Runtime;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  /** The fenced port: writes are allowed only while this process leads. */
  readonly api: Api;
  readonly caches: Caches;
  readonly recorder: EventRecorder;
  readonly installations: Installations;
}

import { type App, mountHealth, type ReadinessCheck } from '#kit/http/http.ts';
import { type AdminDeps, mountAdmin } from './surfaces/admin/routes.ts';
import { type ConfigurationDeps, mountConfiguration } from './surfaces/configuration/routes.ts';
import type { CollectDeps } from './surfaces/evidence/collect.ts';
import { mountEvidence } from './surfaces/evidence/routes.ts';
import { mountOperatorApi, type OperatorApiDeps } from './surfaces/operator-api/routes.ts';
import { mountPreview, type PreviewDeps } from './surfaces/preview/routes.ts';
import { mountStatistics } from './surfaces/statistics/routes.ts';
import type { SubmissionDeps } from './surfaces/submissions/answer-submission.ts';
import { mountBatch } from './surfaces/submissions/batch-routes.ts';
import { mountAdmission } from './surfaces/submissions/routes.ts';

export interface Deps extends AdminDeps, CollectDeps, PreviewDeps, ConfigurationDeps {
  readonly operatorApi: OperatorApiDeps;
  /** Checks that must pass for the validator to be ready. */
  readonly checks: readonly ReadinessCheck[];
  readonly peerClients: AdminDeps['peerClients'] &
    CollectDeps['peerClients'] &
    PreviewDeps['peerClients'] &
    ConfigurationDeps['peerClients'];
  readonly admission: SubmissionDeps['admission'];
  readonly forward: SubmissionDeps['forward'];
  readonly onFault: SubmissionDeps['onFault'];
}

/** Mounts all HTTP routes. Registering them reads nothing from deps. */
export function mountRoutes(app: App, deps: Deps): void {
  const answering: SubmissionDeps = {
    get admission() {
      return deps.admission;
    },
    get forward() {
      return deps.forward;
    },
    get onFault() {
      return deps.onFault;
    },
    nowMs: () => deps.nowMs(),
  };
  mountAdmission(app, answering);
  mountBatch(app, answering);
  mountHealth(app, () => deps.checks);
  mountAdmin(app, deps);
  mountEvidence(app, deps);
  mountStatistics(app, deps);
  mountPreview(app, deps);
  mountConfiguration(app, deps);
  mountOperatorApi(app, deps.operatorApi);
}

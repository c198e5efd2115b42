import { type App, mountHealth, type ReadinessCheck } from '#kit/http/http.ts';
import { type AdminDeps, mountAdmin } from './admin/routes.ts';
import type { Answering } from './admission/answer-submission.ts';
import { mountBatch } from './admission/batch-routes.ts';
import { mountAdmission } from './admission/routes.ts';
import { type ConfigurationDeps, mountConfiguration } from './configuration/routes.ts';
import type { CollectDeps } from './evidence/collect.ts';
import { mountEvidence } from './evidence/routes.ts';
import { mountOperating, type OperatingDeps } from './operator-api/routes.ts';
import { type InspectionDeps, mountInspection } from './preview/routes.ts';
import { mountMeasuring } from './statistics/routes.ts';

export interface Deps extends AdminDeps, CollectDeps, InspectionDeps, ConfigurationDeps {
  readonly operating: OperatingDeps;
  /** Checks that must pass for the validator to be ready. */
  readonly checks: readonly ReadinessCheck[];
  readonly colleagues: AdminDeps['colleagues'] &
    CollectDeps['colleagues'] &
    InspectionDeps['colleagues'] &
    ConfigurationDeps['colleagues'];
  readonly admission: Answering['admission'];
  readonly forward: Answering['forward'];
  readonly onFault: Answering['onFault'];
}

/** Mounts all HTTP routes. Registering them reads nothing from deps. */
export function mountRoutes(app: App, deps: Deps): void {
  const answering: Answering = {
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
  mountMeasuring(app, deps);
  mountInspection(app, deps);
  mountConfiguration(app, deps);
  mountOperating(app, deps.operating);
}

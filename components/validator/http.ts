import type { App } from '#kit/http/http.ts';
import { type AdminDeps, mountAdmin } from './admin/routes.ts';
import { mountAdmission } from './admission/routes.ts';
import type { SubmissionRpcOptions } from './admission/rpc.ts';
import type { CollectDeps } from './evidence/collect.ts';
import { mountEvidence } from './evidence/routes.ts';
import { mountOperating, type OperatingDeps } from './operating/routes.ts';

export interface Deps extends AdminDeps, CollectDeps {
  readonly operating: OperatingDeps;
  readonly colleagues: AdminDeps['colleagues'] & CollectDeps['colleagues'];
  readonly admission: SubmissionRpcOptions['admission'];
  readonly forward: SubmissionRpcOptions['forward'];
  readonly onFault: SubmissionRpcOptions['onFault'];
}

/** Every HTTP route of the validator. Registering them touches nothing of deps. */
export function mountRoutes(app: App, deps: Deps): void {
  mountAdmission(app, {
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
  });
  mountAdmin(app, deps);
  mountEvidence(app, deps);
  mountOperating(app, deps.operating);
}

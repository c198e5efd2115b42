import type { App } from '#kit/http/http.ts';
import { type AdminDeps, mountAdmin } from './admin/routes.ts';
import { mountAdmission } from './admission/routes.ts';
import type { SubmissionRpcOptions } from './admission/rpc.ts';

export interface Deps extends AdminDeps {
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
}

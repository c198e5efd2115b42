import type { ControllerFactory } from '../compose.ts';
import { createPlatform } from '../platform/clients.ts';
import { connectPrincipals } from '../platform/principals.ts';
import { connectMembers } from '../platform/validators.ts';
import { createOrphanSweeper } from './orphans/sweep.ts';
import { createReconciler, type Reconciler } from './reconciler/reconciler.ts';
import { registerKind } from './register/register.ts';
import { tenantKind } from './tenant/tenant.ts';
import { createValidatorSetController } from './validator-set/controller.ts';

/** All controllers of the operator. */
export const controllers: ControllerFactory = (dependencies, sessions) => {
  const platform = createPlatform(sessions);
  const tenants = createReconciler(dependencies, tenantKind(dependencies, platform));
  const registers: Reconciler = createReconciler(dependencies, registerKind(dependencies, platform));
  return [
    createValidatorSetController({
      dependencies,
      members: connectMembers(sessions),
      principals: connectPrincipals(sessions),
    }),
    tenants,
    createOrphanSweeper(dependencies, platform),
    {
      ...registers,
      stop: async (graceMs) => {
        await registers.stop(graceMs);
        platform.stop();
      },
    },
  ];
};

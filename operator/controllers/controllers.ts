import type { Controllers } from '../compose.ts';
import { createPlatform } from '../platform/clients.ts';
import { connectPrincipals } from '../platform/principals.ts';
import { connectMembers } from '../platform/validators.ts';
import { createOrphanSweeper } from './orphans/sweep.ts';
import { createShell, type Shell } from './reconciler/reconciler.ts';
import { registerKind } from './register/register.ts';
import { tenantKind } from './tenant/tenant.ts';
import { createValidatorSetController } from './validator-set/controller.ts';

/** Every controller of the operator. */
export const controllers: Controllers = (parts, links) => {
  const platform = createPlatform(links);
  const tenants = createShell(parts, tenantKind(parts, platform));
  const registers: Shell = createShell(parts, registerKind(parts, platform));
  return [
    createValidatorSetController({
      parts,
      members: connectMembers(links),
      principals: connectPrincipals(links),
    }),
    tenants,
    createOrphanSweeper(parts, platform),
    {
      ...registers,
      stop: async (graceMs) => {
        await registers.stop(graceMs);
        platform.stop();
      },
    },
  ];
};

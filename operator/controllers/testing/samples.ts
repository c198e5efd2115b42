import { registers, tenants } from '../reconciler/resources.ts';
import type { World } from './operator.ts';

export const acme = { displayName: 'Acme', subdomain: 'acme' };
export const invoices = { title: 'Invoices', tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' } };

/** Applies a set of four validators, a tenant and a register. */
export function applySamples(world: World): void {
  world.putSet('main', 4);
  world.put(tenants, 'acme', acme);
  world.put(registers, 'invoices', invoices);
}

/** Whether the tenant and the register of the samples are ready. */
export function areSamplesReady(world: World): boolean {
  return world.isReady(tenants, 'acme') && world.isReady(registers, 'invoices');
}

/** Deletes an object like kubectl delete. */
export function deleteObject(world: World, resource: typeof tenants, name: string): void {
  const { group, version, plural } = resource;
  const target = { group, version, plural, namespace: 'acme', name };
  const deletionTimestamp = new Date(world.timing.nowMs()).toISOString();
  world.server.state.merge(target, { metadata: { deletionTimestamp } });
}

/** Whether the condition Ready of an object has a reason. */
export function hasReason(world: World, resource: typeof tenants, name: string): (reason: string) => boolean {
  return (reason) => world.condition(resource, name, 'Ready')?.reason === reason;
}

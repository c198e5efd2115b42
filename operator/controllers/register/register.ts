import { parseRegister, type Register } from '../../api/register.ts';
import { parseTenant } from '../../api/tenant.ts';
import { parseValidatorSet } from '../../api/validator-set.ts';
import { canonicalText } from '../../kube/compare.ts';
import type { EventDetails } from '../../kube/events.ts';
import { type KubeObject, keyOf, type Resource } from '../../kube/resource.ts';
import type { Change } from '../../kube/store.ts';
import { usableMembers } from '../../plan/register/membership.ts';
import { planRegisterRemoval } from '../../plan/register/plan.ts';
import type { Clients, Platform } from '../../platform/clients.ts';
import { type Orphan, removeOrLeave } from '../orphans/record.ts';
import type { Caches } from '../reconciler/caches.ts';
import type { Parts } from '../reconciler/dependencies.ts';
import type { Finalization, FinalizePass, Kind, ReconcilePass, Wake } from '../reconciler/kind.ts';
import { registers, tenants, validatorSets } from '../reconciler/resources.ts';
import { converge, type Surroundings } from './converge.ts';
import { RefusalMemory } from './refused-changes.ts';

/** Registers become ledgers: made, attested, sealed, and then changed as their roster allows. */
export function registerKind(
  parts: Pick<Parts, 'api' | 'caches' | 'timing'>,
  platform: Platform,
): Kind<Register> {
  const { caches, timing } = parts;
  const memory = new RefusalMemory();
  return {
    kind: 'Register',
    resource: registers,
    parse: parseRegister,
    children: [],
    reads: [tenants, validatorSets],
    wakes: [
      wake(caches, tenants, { index: 'tenantRef', glance: glanceAtTenant }),
      wake(caches, validatorSets, { index: 'validatorSetRef', glance: glanceAtSet }),
    ],
    reconcile: async (pass) => {
      const clients = await platform.of(pass.installation);
      const surroundings = () => surroundingsOf(caches, pass);
      return converge({ clients, memory, nowMs: () => timing.nowMs(), surroundings }, pass);
    },
    finalize: (pass) => finalize(parts, platform, pass),
    forget: (uid) => memory.forget(uid),
  };
}

/** What a register must know of an object that it refers to; heights and heartbeats are not of it. */
type Glance = (object: KubeObject) => unknown;

const glanceAtTenant: Glance = (object) => {
  const { metadata, status } = parseTenant(object);
  return [metadata.uid, status.organizationId, status.state];
};

const glanceAtSet: Glance = (object) => {
  const set = parseValidatorSet(object);
  const { replicas, suspend, registration } = set.spec;
  return [set.metadata.uid, replicas, suspend, registration.autoApprove, usableMembers(set)];
};

/** A change of what registers refer to wakes those that do. */
function wake(
  caches: Caches,
  resource: Resource,
  { index, glance }: { index: string; glance: Glance },
): Wake {
  const isNews = ({ type, object, before }: Change): boolean =>
    type !== 'updated' ||
    before === undefined ||
    canonicalText(glance(before)) !== canonicalText(glance(object));
  const keysOf = (change: Change) =>
    isNews(change)
      ? caches
          .of(registers)
          .findBy(index, change.key)
          .map(({ metadata }) => keyOf(metadata))
      : [];
  return { resource, keysOf };
}

function surroundingsOf(caches: Caches, { resource }: ReconcilePass<Register>): Surroundings {
  const { namespace } = resource.metadata;
  const { tenantRef, validatorSetRef } = resource.spec;
  const find = (kind: Resource, name: string | undefined): KubeObject | undefined =>
    name === undefined ? undefined : caches.of(kind).find(keyOf({ namespace, name }));
  const tenant = find(tenants, tenantRef?.name);
  const validatorSet = find(validatorSets, validatorSetRef.name);
  const others = caches.of(validatorSets).list();
  return {
    tenant: tenant === undefined ? undefined : parseTenant(tenant),
    validatorSet: validatorSet === undefined ? undefined : parseValidatorSet(validatorSet),
    setNames: others
      .filter(({ metadata }) => metadata.namespace === namespace)
      .map(({ metadata }) => metadata.name),
    isResourceOf: (uid) =>
      caches
        .of(registers)
        .list()
        .some(({ metadata }) => metadata.uid === uid),
  };
}

/** Ends what the object has to do with its register; one that is kept does not wait for a service. */
function finalize(
  parts: Pick<Parts, 'api' | 'timing'>,
  platform: Platform,
  pass: FinalizePass<Register>,
): Promise<Finalization> {
  const { metadata, spec } = pass.resource;
  const { deletionPolicy: policy } = spec;
  const orphan: Orphan | undefined =
    policy === 'Retain' ? { kind: 'Register', name: metadata.name, policy } : undefined;
  return removeOrLeave(parts, platform, pass, { orphan, remove: (clients) => remove(clients, pass) });
}

async function remove(
  { registers: service }: Clients,
  { resource, signal, log }: FinalizePass<Register>,
): Promise<Finalization> {
  const { uid } = resource.metadata;
  const { steps, blocked } = planRegisterRemoval(resource, await service.find(uid, signal));
  if (blocked !== undefined) return { done: false, reason: 'DeletionBlocked', message: blocked };
  const events: EventDetails[] = [];
  for (const step of steps) {
    if (step.act !== 'remove') continue;
    log.info({ action: step.act }, step.says);
    await service.remove(uid, step.policy, signal);
    events.push({ type: 'Normal', reason: 'Progressing', action: 'Delete', note: step.says });
  }
  return { done: true, events };
}

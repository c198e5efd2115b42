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
import { type Orphan, removeOrRecord } from '../orphans/record.ts';
import type { Caches } from '../reconciler/caches.ts';
import type { Dependencies } from '../reconciler/dependencies.ts';
import type {
  FinalizeRequest,
  FinalizeResult,
  KindHandler,
  ReconcileRequest,
  RelatedResource,
} from '../reconciler/kind.ts';
import { registers, tenants, validatorSets } from '../reconciler/resources.ts';
import { converge, type RelatedObjects } from './converge.ts';
import { RefusedChanges } from './refused-changes.ts';

/** Reconciles Registers: creation, attestation, genesis, and changes that the roster accepts. */
export function registerKind(
  dependencies: Pick<Dependencies, 'api' | 'caches' | 'timing'>,
  platform: Platform,
): KindHandler<Register> {
  const { caches, timing } = dependencies;
  const refusedChanges = new RefusedChanges();
  return {
    kind: 'Register',
    resource: registers,
    parse: parseRegister,
    children: [],
    reads: [tenants, validatorSets],
    relatedResources: [
      relatedResource(caches, tenants, { index: 'tenantRef', relevantFields: tenantFields }),
      relatedResource(caches, validatorSets, { index: 'validatorSetRef', relevantFields: setFields }),
    ],
    reconcile: async (request) => {
      const clients = await platform.of(request.installation);
      const relatedObjects = () => relatedObjectsOf(caches, request);
      return converge({ clients, refusedChanges, nowMs: () => timing.nowMs(), relatedObjects }, request);
    },
    finalize: (request) => finalize(dependencies, platform, request),
    forget: (uid) => refusedChanges.forget(uid),
  };
}

/** The fields of a referenced object that matter to a register; heights and heartbeats do not. */
type RelevantFields = (object: KubeObject) => unknown;

const tenantFields: RelevantFields = (object) => {
  const { metadata, status } = parseTenant(object);
  return [metadata.uid, status.organizationId, status.state];
};

const setFields: RelevantFields = (object) => {
  const set = parseValidatorSet(object);
  const { replicas, suspend, registration } = set.spec;
  return [set.metadata.uid, replicas, suspend, registration.autoApprove, usableMembers(set)];
};

/** Relevant changes of a referenced object trigger reconciles of the registers that refer to it. */
function relatedResource(
  caches: Caches,
  resource: Resource,
  { index, relevantFields }: { index: string; relevantFields: RelevantFields },
): RelatedResource {
  const isNews = ({ type, object, before }: Change): boolean =>
    type !== 'updated' ||
    before === undefined ||
    canonicalText(relevantFields(before)) !== canonicalText(relevantFields(object));
  const keysOf = (change: Change) =>
    isNews(change)
      ? caches
          .of(registers)
          .findBy(index, change.key)
          .map(({ metadata }) => keyOf(metadata))
      : [];
  return { resource, keysOf };
}

function relatedObjectsOf(caches: Caches, { resource }: ReconcileRequest<Register>): RelatedObjects {
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

/** Cleans up a register; with Retain it does not wait for an unavailable service. */
function finalize(
  dependencies: Pick<Dependencies, 'api' | 'timing'>,
  platform: Platform,
  request: FinalizeRequest<Register>,
): Promise<FinalizeResult> {
  const { metadata, spec } = request.resource;
  const { deletionPolicy: policy } = spec;
  const orphan: Orphan | undefined =
    policy === 'Retain' ? { kind: 'Register', name: metadata.name, policy } : undefined;
  return removeOrRecord(dependencies, platform, request, {
    orphan,
    remove: (clients) => remove(clients, request),
  });
}

async function remove(
  { registers: service }: Clients,
  { resource, signal, log }: FinalizeRequest<Register>,
): Promise<FinalizeResult> {
  const { uid } = resource.metadata;
  const { steps, blocked } = planRegisterRemoval(resource, await service.find(uid, signal));
  if (blocked !== undefined) return { done: false, reason: 'DeletionBlocked', message: blocked };
  const events: EventDetails[] = [];
  for (const step of steps) {
    if (step.action !== 'remove') continue;
    log.info({ action: step.action }, step.summary);
    await service.remove(uid, step.policy, signal);
    events.push({ type: 'Normal', reason: 'Progressing', action: 'Delete', note: step.summary });
  }
  return { done: true, events };
}

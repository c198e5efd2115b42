import { parseRegister, type RegisterStatus } from '../../api/register.ts';
import { RequeueError } from '../../api/requeue-error.ts';
import { parseTenant, type Tenant, type TenantStatus } from '../../api/tenant.ts';
import type { EventDetails } from '../../kube/events.ts';
import { ingresses } from '../../kube/kinds.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Change } from '../../kube/store.ts';
import { defined } from '../../plan/outcome.ts';
import { planTenant, planTenantRemoval, type TenantStep } from '../../plan/tenant/plan.ts';
import type { Clients, Platform } from '../../platform/clients.ts';
import type { Organizations } from '../../platform/organizations.ts';
import { type Orphan, removeOrRecord } from '../orphans/record.ts';
import type { Dependencies } from '../reconciler/dependencies.ts';
import type {
  FinalizeRequest,
  FinalizeResult,
  KindHandler,
  ReconcileRequest,
  ReconcileResult,
} from '../reconciler/kind.ts';
import { registers, tenants } from '../reconciler/resources.ts';
import { outcomeOfTenantRefusal } from './refusals.ts';
import { countAgainMs, RegisterCount } from './register-count.ts';
import { tenantRoute } from './route.ts';

/** Rounds of observe, plan and act; more of them mean that another client keeps changing the organisation. */
const maxRounds = 3;
/** Retry interval of a final refusal, whose cause may be removed outside Kubernetes. */
const refusedRetryMs = 300_000;
const contestedRetryMs = 10_000;

/** Reconciles Tenants: an organisation in the tenant service, and an Ingress where the installation has a domain. */
export function tenantKind(
  dependencies: Pick<Dependencies, 'api' | 'timing'>,
  platform: Platform,
): KindHandler<Tenant> {
  const counts = new RegisterCount(dependencies.timing);
  return {
    kind: 'Tenant',
    resource: tenants,
    parse: parseTenant,
    children: [ingresses],
    relatedResources: [{ resource: registers, keysOf: tenantsOf }],
    reconcile: (request) => reconcile(platform, counts, request),
    finalize: (request) => finalize(dependencies, platform, request),
  };
}

/** A created or deleted register triggers a new count for its tenant. */
function tenantsOf({ type, object, before }: Change): readonly string[] {
  const { metadata, spec, status } = parseRegister(object);
  const isSeen = (each: RegisterStatus) => each.genesisTransactionId !== undefined;
  const isNews =
    type === 'deleted' || isSeen(status) !== (before !== undefined && isSeen(parseRegister(before).status));
  return isNews && spec.tenantRef !== undefined ? [keyOf({ ...metadata, name: spec.tenantRef.name })] : [];
}

async function reconcile(
  platform: Platform,
  counts: RegisterCount,
  request: ReconcileRequest<Tenant>,
): Promise<ReconcileResult> {
  await request.applyChildren(tenantRoute(request.resource, request.installation));
  const { organizations, registers: ledgers } = await platform.of(request.installation);
  const result = await converge(organizations, request);
  const status: TenantStatus = result.status ?? {};
  const { organizationId } = status;
  if (organizationId === undefined) return result;
  const { signal, log, installation, resource } = request;
  const { namespace } = installation;
  const counted = await counts.find({ namespace, organizationId, registers: ledgers, signal, log });
  if (counted !== undefined) return { ...result, status: { ...status, registerCount: counted } };
  // the last known count stays in the status
  const { registerCount } = resource.status;
  const again = Math.min(result.requeueAfterMs ?? Infinity, countAgainMs);
  return { ...result, status: { ...status, ...defined({ registerCount }) }, requeueAfterMs: again };
}

/** Observes, plans and acts until no step is left. */
async function converge(
  organizations: Organizations,
  request: ReconcileRequest<Tenant>,
): Promise<ReconcileResult> {
  const { resource, signal } = request;
  const events: EventDetails[] = [];
  for (let round = 1; ; round += 1) {
    const organization = await organizations.find(resource.metadata.uid, signal);
    const { steps, judgement } = planTenant(resource, organization);
    if (steps.length === 0) return { ...judgement, events };
    if (round > maxRounds) return { ...judgement, events, requeueAfterMs: contestedRetryMs };
    for (const step of steps) {
      const refusal = await attempt(organizations, request, step);
      if (refusal !== undefined) {
        return { ...judgement, outcome: refusal, events, requeueAfterMs: refusedRetryMs };
      }
      events.push({ type: 'Normal', reason: 'Progressing', action: 'Change', note: step.summary });
    }
  }
}

/** Carries out a step; returns the outcome of a final refusal. */
async function attempt(organizations: Organizations, request: Target, step: TenantStep) {
  try {
    await perform(organizations, request, step);
    return undefined;
  } catch (error) {
    const outcome = outcomeOfTenantRefusal(error);
    if (outcome === undefined) throw error;
    return outcome;
  }
}

type Target = Pick<ReconcileRequest<Tenant>, 'resource' | 'signal' | 'log'>;

async function perform(
  organizations: Organizations,
  { resource, signal, log }: Target,
  step: TenantStep,
): Promise<void> {
  const { uid } = resource.metadata;
  log.info({ action: step.action }, step.summary);
  if (step.action === 'upsert') await organizations.upsert(uid, step.desired, signal);
  else await organizations.remove(uid, step.policy, signal);
}

/** Cleans up an organisation; unless it is deleted, without waiting for an unavailable service. */
function finalize(
  dependencies: Pick<Dependencies, 'api' | 'timing'>,
  platform: Platform,
  request: FinalizeRequest<Tenant>,
): Promise<FinalizeResult> {
  const { metadata, spec } = request.resource;
  const { deletionPolicy: policy } = spec;
  const orphan: Orphan | undefined =
    policy !== 'Delete' ? { kind: 'Tenant', name: metadata.name, policy } : undefined;
  return removeOrRecord(dependencies, platform, request, {
    orphan,
    remove: (clients) => remove(clients, request),
  });
}

async function remove({ organizations }: Clients, request: FinalizeRequest<Tenant>): Promise<FinalizeResult> {
  const { resource, signal } = request;
  const organization = await organizations.find(resource.metadata.uid, signal);
  const events: EventDetails[] = [];
  for (const step of planTenantRemoval(resource, organization)) {
    const refusal = await attempt(organizations, request, step);
    if (refusal !== undefined) {
      throw new RequeueError('DeletionBlocked', refusal.message, {
        state: 'stalled',
        retryAfterMs: refusedRetryMs,
      });
    }
    events.push({ type: 'Normal', reason: 'Progressing', action: 'Delete', note: step.summary });
  }
  return { done: true, events };
}

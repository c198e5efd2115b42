import { parseRegister, type RegisterStatus } from '../../api/register.ts';
import { parseTenant, type Tenant, type TenantStatus } from '../../api/tenant.ts';
import type { EventDetails } from '../../kube/events.ts';
import { ingresses } from '../../kube/kinds.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Change } from '../../kube/store.ts';
import { defined } from '../../plan/outcome.ts';
import { planTenant, planTenantRemoval, type TenantStep } from '../../plan/tenant/plan.ts';
import type { Clients, Platform } from '../../platform/clients.ts';
import type { Organizations } from '../../platform/organizations.ts';
import { type Orphan, removeOrLeave } from '../orphans/record.ts';
import type { Parts } from '../reconciler/dependencies.ts';
import type { Finalization, FinalizePass, Kind, ReconcilePass, Verdict } from '../reconciler/kind.ts';
import { Blocked } from '../reconciler/requeue-error.ts';
import { registers, tenants } from '../reconciler/resources.ts';
import { outcomeOfTenantRefusal } from './refusals.ts';
import { COUNT_AGAIN_MS, RegisterCount } from './register-count.ts';
import { tenantRoute } from './route.ts';

/** What changes in between is changed by somebody who goes on: the rest waits for another time. */
const MAX_ROUNDS = 3;
/** A refusal that only a person ends is tried again this often, in case it was ended elsewhere. */
const REFUSED_RETRY_MS = 300_000;
const CONTESTED_RETRY_MS = 10_000;

/** Tenants become organisations of the tenant service, and addresses where the installation has a domain. */
export function tenantKind(parts: Pick<Parts, 'api' | 'timing'>, platform: Platform): Kind<Tenant> {
  const counts = new RegisterCount(parts.timing);
  return {
    kind: 'Tenant',
    resource: tenants,
    parse: parseTenant,
    children: [ingresses],
    wakes: [{ resource: registers, keysOf: tenantsOf }],
    reconcile: (pass) => reconcile(platform, counts, pass),
    finalize: (pass) => finalize(parts, platform, pass),
  };
}

/** A register that comes or goes is counted by its tenant. */
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
  pass: ReconcilePass<Tenant>,
): Promise<Verdict> {
  await pass.applyChildren(tenantRoute(pass.resource, pass.installation));
  const { organizations, registers: ledgers } = await platform.of(pass.installation);
  const verdict = await converge(organizations, pass);
  const status: TenantStatus = verdict.status ?? {};
  const { organizationId } = status;
  if (organizationId === undefined) return verdict;
  const { signal, log, installation, resource } = pass;
  const { namespace } = installation;
  const counted = await counts.find({ namespace, organizationId, registers: ledgers, signal, log });
  if (counted !== undefined) return { ...verdict, status: { ...status, registerCount: counted } };
  // the last number stands for a while
  const { registerCount } = resource.status;
  const again = Math.min(verdict.requeueAfterMs ?? Infinity, COUNT_AGAIN_MS);
  return { ...verdict, status: { ...status, ...defined({ registerCount }) }, requeueAfterMs: again };
}

/** Looks, plans and acts until nothing is left to do. */
async function converge(organizations: Organizations, pass: ReconcilePass<Tenant>): Promise<Verdict> {
  const { resource, signal } = pass;
  const events: EventDetails[] = [];
  for (let round = 1; ; round += 1) {
    const organization = await organizations.find(resource.metadata.uid, signal);
    const { steps, judgement } = planTenant(resource, organization);
    if (steps.length === 0) return { ...judgement, events };
    if (round > MAX_ROUNDS) return { ...judgement, events, requeueAfterMs: CONTESTED_RETRY_MS };
    for (const step of steps) {
      const refusal = await attempt(organizations, pass, step);
      if (refusal !== undefined) {
        return { ...judgement, outcome: refusal, events, requeueAfterMs: REFUSED_RETRY_MS };
      }
      events.push({ type: 'Normal', reason: 'Progressing', action: 'Change', note: step.says });
    }
  }
}

/** What a final refusal means; undefined when the step was carried out. */
async function attempt(organizations: Organizations, pass: Target, step: TenantStep) {
  try {
    await perform(organizations, pass, step);
    return undefined;
  } catch (error) {
    const outcome = outcomeOfTenantRefusal(error);
    if (outcome === undefined) throw error;
    return outcome;
  }
}

type Target = Pick<ReconcilePass<Tenant>, 'resource' | 'signal' | 'log'>;

async function perform(
  organizations: Organizations,
  { resource, signal, log }: Target,
  step: TenantStep,
): Promise<void> {
  const { uid } = resource.metadata;
  log.info({ action: step.act }, step.says);
  if (step.act === 'upsert') await organizations.upsert(uid, step.wish, signal);
  else await organizations.remove(uid, step.policy, signal);
}

/** Ends what the object has to do with its organisation; where that keeps the data, without waiting for a service. */
function finalize(
  parts: Pick<Parts, 'api' | 'timing'>,
  platform: Platform,
  pass: FinalizePass<Tenant>,
): Promise<Finalization> {
  const { metadata, spec } = pass.resource;
  const { deletionPolicy: policy } = spec;
  const orphan: Orphan | undefined =
    policy !== 'Delete' ? { kind: 'Tenant', name: metadata.name, policy } : undefined;
  return removeOrLeave(parts, platform, pass, { orphan, remove: (clients) => remove(clients, pass) });
}

async function remove({ organizations }: Clients, pass: FinalizePass<Tenant>): Promise<Finalization> {
  const { resource, signal } = pass;
  const organization = await organizations.find(resource.metadata.uid, signal);
  const events: EventDetails[] = [];
  for (const step of planTenantRemoval(resource, organization)) {
    const refusal = await attempt(organizations, pass, step);
    if (refusal !== undefined) {
      throw new Blocked('DeletionBlocked', refusal.message, {
        state: 'stalled',
        retryAfterMs: REFUSED_RETRY_MS,
      });
    }
    events.push({ type: 'Normal', reason: 'Progressing', action: 'Delete', note: step.says });
  }
  return { done: true, events };
}

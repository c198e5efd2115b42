import type { Tenant, TenantSpec, TenantStatus } from '../../api/tenant.ts';
import { type Disruption, defined, type Judgement, ready, reconciling, stalled } from '../outcome.ts';
import type { BrandingFacts, DesiredOrganization, OrganizationFacts } from './facts.ts';

/** One call of the tenant service; calls are idempotent. */
export type TenantStep = (
  | { readonly action: 'upsert'; readonly desired: DesiredOrganization }
  | { readonly action: 'remove'; readonly policy: TenantSpec['deletionPolicy'] }
) & {
  /** Description for people. */
  readonly summary: string;
  readonly disruption: Disruption;
};

interface TenantPlan {
  /** In order. After the last step a new plan is made from the new state. */
  readonly steps: readonly TenantStep[];
  /** Judgement of the observed state, before any step. */
  readonly judgement: Judgement<TenantStatus>;
}

/**
 * Plans the steps from an organisation to the desired state of its Tenant. Members of the spec are enforced; absent
 * members stay under the control of the tenant service's API.
 * @param organization the organisation of the resource's uid; undefined when there is none
 */
export function planTenant(tenant: Tenant, organization: OrganizationFacts | undefined): TenantPlan {
  if (organization === undefined) return planCreation(tenant);
  const status = statusOf(organization);
  const found = { conditionUpdates: [], status };
  const mismatchMessage = mismatch(tenant, organization);
  if (mismatchMessage !== undefined) {
    return { steps: [], judgement: { outcome: stalled('AdoptionRefused', mismatchMessage), ...found } };
  }
  if (organization.state === 'Terminating') {
    const text = `Organisation ${organization.organizationId} was deleted through the API and cannot be restored; delete this object too`;
    return { steps: [], judgement: { outcome: stalled('InvalidReference', text), ...found } };
  }
  const steps = planChanges(tenant, organization);
  const [first] = steps;
  const outcome = first === undefined ? inSyncOutcome(tenant) : reconciling('Progressing', first.summary);
  return { steps, judgement: { outcome, ...found } };
}

/** Steps for the organisation of a Tenant that is being deleted; empty when nothing is left to do. */
export function planTenantRemoval(
  tenant: Tenant,
  organization: OrganizationFacts | undefined,
): readonly TenantStep[] {
  if (organization === undefined || organization.state === 'Terminating') return [];
  const { organizationId } = organization;
  const policy = tenant.spec.deletionPolicy;
  const summary = {
    Retain: `Keep organisation ${organizationId} unchanged, without a Tenant`,
    Suspend: `Suspend organisation ${organizationId} and keep its data`,
    Delete: `Delete organisation ${organizationId}; its subdomain is never reused`,
  };
  const disruption = { Retain: 'none', Suspend: 'sign-in-stops', Delete: 'data-deleted' } as const;
  return [{ action: 'remove', policy, summary: summary[policy], disruption: disruption[policy] }];
}

/** Plans the creation; there is no organisation of this uid. */
function planCreation({ spec, status }: Tenant): TenantPlan {
  if (status.organizationId !== undefined) {
    // a new organisation in place of a lost one would hide the loss
    const text = `Organisation ${status.organizationId} does not exist in the tenant service any more; restore its database, or delete this object and create another Tenant`;
    const { organizationId } = status;
    const outcome = stalled('InvalidReference', text);
    return { steps: [], judgement: { outcome, conditionUpdates: [], status: { organizationId } } };
  }
  const { organizationId, subdomain, displayName } = spec;
  const summary =
    organizationId === undefined
      ? `Create organisation ${displayName} with the subdomain ${subdomain}`
      : `Adopt organisation ${organizationId}`;
  const steps: readonly TenantStep[] = [
    {
      action: 'upsert',
      desired: desiredOrganization(spec, {}),
      summary,
      disruption: spec.suspended ? 'sign-in-stops' : 'none',
    },
  ];
  const outcome = reconciling('Progressing', summary);
  return { steps, judgement: { outcome, conditionUpdates: [], status: { state: 'Pending' } } };
}

function mismatch({ spec }: Tenant, found: OrganizationFacts): string | undefined {
  const { organizationId, subdomain, organizationType } = found;
  if (spec.organizationId !== undefined && spec.organizationId !== organizationId) {
    return `This Tenant is bound to organisation ${organizationId}, not to ${spec.organizationId} of spec.organizationId; delete it and create another Tenant`;
  }
  if (spec.subdomain !== subdomain) {
    return `Organisation ${organizationId} has the subdomain ${subdomain}; create a Tenant with spec.subdomain: ${subdomain}`;
  }
  if (spec.organizationType !== organizationType) {
    return `Organisation ${organizationId} is of type ${organizationType}; create a Tenant with spec.organizationType: ${organizationType}`;
  }
  return undefined;
}

function planChanges({ spec }: Tenant, found: OrganizationFacts): readonly TenantStep[] {
  const isSuspended = found.state === 'Suspended';
  const changes = [
    ...(found.name === spec.displayName ? [] : [`change its name to ${spec.displayName}`]),
    ...differences(spec.branding ?? {}, found.branding).map((name) => `change ${name}`),
    ...(spec.suspended && !isSuspended ? ['suspend it'] : []),
    ...(!spec.suspended && isSuspended ? ['resume it'] : []),
  ];
  if (changes.length === 0) return [];
  const summary = `Organisation ${found.organizationId}: ${changes.join(', ')}`;
  const disruption = spec.suspended && !isSuspended ? 'sign-in-stops' : 'none';
  return [{ action: 'upsert', desired: desiredOrganization(spec, found.branding), summary, disruption }];
}

function differences(desired: BrandingFacts, found: BrandingFacts): readonly string[] {
  const names = ['primaryColor', 'secondaryColor', 'companyTagline', 'logoUrl'] as const;
  return names.filter((name) => desired[name] !== undefined && desired[name] !== found[name]);
}

function desiredOrganization(spec: TenantSpec, found: BrandingFacts): DesiredOrganization {
  const { displayName: name, subdomain, organizationType, suspended, organizationId } = spec;
  const branding = spec.branding === undefined ? undefined : { ...found, ...spec.branding };
  return { name, subdomain, organizationType, suspended, ...defined({ branding, organizationId }) };
}

function inSyncOutcome({ spec }: Tenant) {
  if (!spec.suspended) return ready('The organisation matches the spec');
  return { ...ready('The organisation is suspended, as the spec requests'), reason: 'Suspended' as const };
}

function statusOf({ organizationId, state, userCount }: OrganizationFacts): TenantStatus {
  return { organizationId, state, userCount };
}

import type { Outcome } from '../../api/conditions.ts';
import { stalled } from '../../plan/outcome.ts';
import { ServiceRefusal } from '../../platform/refusals.ts';

/** The outcome of a refusal by the tenant service; undefined when a retry may succeed. */
export function outcomeOfTenantRefusal(error: unknown): Outcome | undefined {
  if (!(error instanceof ServiceRefusal)) return undefined;
  if (error.is('SUBDOMAIN_CONFLICT')) return stalled('AdoptionRefused', subdomainTaken(error));
  if (error.is('ORGANIZATION_BOUND', 'ADOPTION_MISMATCH', 'PLATFORM_ORG_PROTECTED', 'IMMUTABLE_FIELD')) {
    return stalled('AdoptionRefused', error.message);
  }
  if (error.is('ORGANIZATION_NOT_FOUND', 'ORGANIZATION_DELETED')) {
    return stalled(
      'InvalidReference',
      `${error.message}; correct spec.organizationId, or delete this object`,
    );
  }
  const isFinal = error.kind === 'invalid' || error.kind === 'unprocessable' || error.kind === 'conflict';
  return isFinal ? stalled('ProgressingWithRetry', error.message) : undefined;
}

function subdomainTaken({ message, members }: ServiceRefusal): string {
  const { organizationId, adoptable } = members;
  const advice =
    adoptable === true
      ? `create the Tenant with spec.organizationId: ${String(organizationId)} to adopt it`
      : 'create a Tenant with another subdomain';
  return `${message}; ${advice}`;
}

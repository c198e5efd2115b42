import { z } from 'zod';
import type { TenantSpec } from '../api/tenant.ts';
import type { DesiredOrganization, OrganizationFacts } from '../plan/tenant/facts.ts';
import { isRefusal } from './refusals.ts';
import type { Service } from './transport.ts';

/** The tenant service as the operator uses it. Calls are idempotent; errors are those of Service.call. */
export interface Organizations {
  /** The organisation of a resource; a deleted one has the state Terminating. */
  find(resourceUid: string, signal?: AbortSignal): Promise<OrganizationFacts | undefined>;
  /** Creates, adopts or changes the organisation of a resource; never two for one uid. */
  upsert(resourceUid: string, desired: DesiredOrganization, signal?: AbortSignal): Promise<OrganizationFacts>;
  /** Unbinds the organisation of a resource by the deletion policy; an unknown uid is not an error. */
  remove(resourceUid: string, policy: TenantSpec['deletionPolicy'], signal?: AbortSignal): Promise<void>;
}

const text = z.string().max(4096);
const optionalText = text.nullish().transform((value) => value ?? undefined);

const organizationSchema = z.object({
  organizationId: z.uuid(),
  state: z.enum(['Active', 'Suspended', 'Terminating']),
  name: text,
  subdomain: text,
  organizationType: z.enum(['Standard', 'Public']),
  branding: z.object({
    primaryColor: optionalText,
    secondaryColor: optionalText,
    companyTagline: optionalText,
    logoUrl: optionalText,
  }),
  userCount: z.int().min(0),
});

const root = '/api/internal/organizations';

/** The tenant service over HTTP; see Organizations. */
export function organizationsOf(service: Service): Organizations {
  const byUid = (uid: string) => `${root}/by-uid/${encodeURIComponent(uid)}`;
  return {
    find: async (resourceUid, signal) => {
      try {
        return await service.call({ method: 'GET', path: byUid(resourceUid), signal }, organizationSchema);
      } catch (error) {
        if (isRefusal(error, 'ORGANIZATION_NOT_FOUND')) return undefined;
        throw error;
      }
    },
    upsert: (resourceUid, desired, signal) =>
      service.call(
        { method: 'POST', path: root, body: { resourceUid, ...desired }, signal },
        organizationSchema,
      ),
    remove: async (resourceUid, policy, signal) => {
      const path = `${byUid(resourceUid)}?policy=${policy}`;
      await service.call({ method: 'DELETE', path, signal }, z.unknown());
    },
  };
}

import { randomUUID } from 'node:crypto';
import type { ErrorKind } from '#core/errors/errors.ts';
import type { DesiredOrganization, OrganizationFacts } from '../../plan/tenant/facts.ts';
import type { Organizations } from '../organizations.ts';
import { ServiceRefusal } from '../refusals.ts';

interface StoredFacts extends OrganizationFacts {
  readonly uid: string | undefined;
}

export interface FakeOrganizations extends Organizations {
  /** All organisations, also deleted ones. */
  readonly all: () => readonly OrganizationFacts[];
  /** Number of calls that changed something. */
  readonly writes: () => number;
  /** Whether a working organisation is bound to a resource. */
  readonly stateOf: (uid: string) => 'bound' | 'free';
  /** Changes an organisation through the public API. */
  readonly edit: (organizationId: string, change: Partial<OrganizationFacts>) => void;
  /** Adds an organisation without a resource. */
  readonly addUnbound: (facts: Partial<OrganizationFacts>) => OrganizationFacts;
}

function refuse(kind: ErrorKind, code: string, members: Readonly<Record<string, unknown>> = {}): never {
  throw new ServiceRefusal(kind, code, `the tenant service refused (${code})`, { status: 0, members });
}

/** The tenant service in memory, by the rules that the operator relies on. */
export function fakeOrganizations(): FakeOrganizations {
  const stored = new Map<string, StoredFacts>();
  let writes = 0;
  const byUid = (uid: string) => [...stored.values()].find((each) => each.uid === uid);
  const store = (organization: StoredFacts): StoredFacts => {
    const before = stored.get(organization.organizationId);
    if (JSON.stringify(before) !== JSON.stringify(organization)) writes += 1;
    stored.set(organization.organizationId, organization);
    return organization;
  };
  const change = (found: StoredFacts, desired: DesiredOrganization, uid: string): StoredFacts => {
    if (found.state === 'Terminating') refuse('gone', 'ORGANIZATION_DELETED');
    const { name, suspended, branding = found.branding } = desired;
    return store({ ...found, uid, name, branding, state: suspended ? 'Suspended' : 'Active' });
  };
  const adopt = (organizationId: string, desired: DesiredOrganization, uid: string): StoredFacts => {
    const found = stored.get(organizationId);
    if (found === undefined) return refuse('not_found', 'ORGANIZATION_NOT_FOUND');
    if (found.uid !== undefined) refuse('conflict', 'ORGANIZATION_BOUND');
    const isSame =
      found.subdomain === desired.subdomain && found.organizationType === desired.organizationType;
    if (!isSame) refuse('conflict', 'ADOPTION_MISMATCH');
    return change(found, desired, uid);
  };
  const create = (desired: DesiredOrganization, uid: string): StoredFacts => {
    const { name, subdomain, organizationType, suspended, branding = {} } = desired;
    const holder = [...stored.values()].find((each) => each.subdomain === subdomain);
    if (holder !== undefined) {
      const { organizationId, state } = holder;
      const adoptable = holder.uid === undefined && state !== 'Terminating';
      refuse('conflict', 'SUBDOMAIN_CONFLICT', { organizationId, state, adoptable });
    }
    const state = suspended ? 'Suspended' : 'Active';
    const organizationId = randomUUID();
    return store({ organizationId, uid, state, name, subdomain, organizationType, branding, userCount: 0 });
  };
  return {
    find: async (resourceUid) => factsOf(byUid(resourceUid)),
    upsert: async (resourceUid, desired) => {
      const found = byUid(resourceUid);
      if (found === undefined) {
        const { organizationId } = desired;
        return withoutUid(
          organizationId === undefined
            ? create(desired, resourceUid)
            : adopt(organizationId, desired, resourceUid),
        );
      }
      const isSame =
        found.subdomain === desired.subdomain && found.organizationType === desired.organizationType;
      if (!isSame) refuse('conflict', 'IMMUTABLE_FIELD');
      return withoutUid(change(found, desired, resourceUid));
    },
    remove: async (resourceUid, policy) => {
      const found = byUid(resourceUid);
      if (found === undefined || found.state === 'Terminating') return;
      if (policy === 'Delete') store({ ...found, state: 'Terminating' });
      else if (policy === 'Suspend') store({ ...found, uid: undefined, state: 'Suspended' });
      else store({ ...found, uid: undefined });
    },
    all: () => [...stored.values()].map(withoutUid),
    writes: () => writes,
    stateOf: (uid) => ((byUid(uid)?.state ?? 'Terminating') === 'Terminating' ? 'free' : 'bound'),
    edit: (organizationId, edit) => {
      const found = stored.get(organizationId);
      if (found !== undefined) stored.set(organizationId, { ...found, ...edit });
    },
    addUnbound: (facts) => {
      const added: StoredFacts = {
        organizationId: randomUUID(),
        uid: undefined,
        state: 'Active',
        name: 'Acme',
        subdomain: 'acme',
        organizationType: 'Standard',
        branding: {},
        userCount: 1,
        ...facts,
      };
      stored.set(added.organizationId, added);
      return withoutUid(added);
    },
  };
}

function withoutUid({ uid: _, ...facts }: StoredFacts): OrganizationFacts {
  return facts;
}

function factsOf(found: StoredFacts | undefined): OrganizationFacts | undefined {
  return found === undefined ? undefined : withoutUid(found);
}

import { randomUUID } from 'node:crypto';
import type { ErrorKind } from '#core/errors/errors.ts';
import type { OrganizationFacts, OrganizationWish } from '../../plan/tenant/facts.ts';
import type { Organizations } from '../organizations.ts';
import { ServiceRefusal } from '../refusals.ts';

interface Kept extends OrganizationFacts {
  readonly uid: string | undefined;
}

export interface FakeOrganizations extends Organizations {
  /** All of them, deleted ones too. */
  readonly all: () => readonly OrganizationFacts[];
  /** Calls that changed something. */
  readonly writes: () => number;
  /** Whether an organisation still stands for a resource and works. */
  readonly stateOf: (uid: string) => 'bound' | 'free';
  /** What somebody else does through the public API. */
  readonly edit: (organizationId: string, change: Partial<OrganizationFacts>) => void;
  /** An organisation that no resource stands for. */
  readonly plant: (facts: Partial<OrganizationFacts>) => OrganizationFacts;
}

function refuse(kind: ErrorKind, code: string, members: Readonly<Record<string, unknown>> = {}): never {
  throw new ServiceRefusal(kind, code, `the tenant service refused (${code})`, { status: 0, members });
}

/** The tenant service in memory, by the rules that the operator relies on. */
export function fakeOrganizations(): FakeOrganizations {
  const kept = new Map<string, Kept>();
  let writes = 0;
  const byUid = (uid: string) => [...kept.values()].find((each) => each.uid === uid);
  const store = (organization: Kept): Kept => {
    const before = kept.get(organization.organizationId);
    if (JSON.stringify(before) !== JSON.stringify(organization)) writes += 1;
    kept.set(organization.organizationId, organization);
    return organization;
  };
  const change = (found: Kept, wish: OrganizationWish, uid: string): Kept => {
    if (found.state === 'Terminating') refuse('gone', 'ORGANIZATION_DELETED');
    const { name, suspended, branding = found.branding } = wish;
    return store({ ...found, uid, name, branding, state: suspended ? 'Suspended' : 'Active' });
  };
  const adopt = (organizationId: string, wish: OrganizationWish, uid: string): Kept => {
    const found = kept.get(organizationId);
    if (found === undefined) return refuse('not_found', 'ORGANIZATION_NOT_FOUND');
    if (found.uid !== undefined) refuse('conflict', 'ORGANIZATION_BOUND');
    const isSame = found.subdomain === wish.subdomain && found.organizationType === wish.organizationType;
    if (!isSame) refuse('conflict', 'ADOPTION_MISMATCH');
    return change(found, wish, uid);
  };
  const create = (wish: OrganizationWish, uid: string): Kept => {
    const { name, subdomain, organizationType, suspended, branding = {} } = wish;
    const rival = [...kept.values()].find((each) => each.subdomain === subdomain);
    if (rival !== undefined) {
      const { organizationId, state } = rival;
      const adoptable = rival.uid === undefined && state !== 'Terminating';
      refuse('conflict', 'SUBDOMAIN_CONFLICT', { organizationId, state, adoptable });
    }
    const state = suspended ? 'Suspended' : 'Active';
    const organizationId = randomUUID();
    return store({ organizationId, uid, state, name, subdomain, organizationType, branding, userCount: 0 });
  };
  return {
    find: async (resourceUid) => strip(byUid(resourceUid)),
    upsert: async (resourceUid, wish) => {
      const found = byUid(resourceUid);
      if (found === undefined) {
        const { organizationId } = wish;
        return bare(
          organizationId === undefined ? create(wish, resourceUid) : adopt(organizationId, wish, resourceUid),
        );
      }
      const isSame = found.subdomain === wish.subdomain && found.organizationType === wish.organizationType;
      if (!isSame) refuse('conflict', 'IMMUTABLE_FIELD');
      return bare(change(found, wish, resourceUid));
    },
    remove: async (resourceUid, policy) => {
      const found = byUid(resourceUid);
      if (found === undefined || found.state === 'Terminating') return;
      if (policy === 'Delete') store({ ...found, state: 'Terminating' });
      else if (policy === 'Suspend') store({ ...found, uid: undefined, state: 'Suspended' });
      else store({ ...found, uid: undefined });
    },
    all: () => [...kept.values()].map(bare),
    writes: () => writes,
    stateOf: (uid) => ((byUid(uid)?.state ?? 'Terminating') === 'Terminating' ? 'free' : 'bound'),
    edit: (organizationId, edit) => {
      const found = kept.get(organizationId);
      if (found !== undefined) kept.set(organizationId, { ...found, ...edit });
    },
    plant: (facts) => {
      const planted: Kept = {
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
      kept.set(planted.organizationId, planted);
      return bare(planted);
    },
  };
}

function bare({ uid: _, ...facts }: Kept): OrganizationFacts {
  return facts;
}

function strip(found: Kept | undefined): OrganizationFacts | undefined {
  return found === undefined ? undefined : bare(found);
}

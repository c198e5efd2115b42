import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DesiredOrganization } from '../../plan/tenant/facts.ts';
import type { Organizations } from '../organizations.ts';

export interface OrganizationsUnderTest {
  readonly organizations: Organizations;
  stop(): Promise<void>;
}

/** Contract of the tenant service and its fake. */
export function organizationsContract(name: string, start: () => Promise<OrganizationsUnderTest>): void {
  describe(`organisations: ${name}`, () => {
    let subject: OrganizationsUnderTest;
    let taken = 0;

    beforeAll(async () => {
      subject = await start();
    });
    afterAll(() => subject.stop());

    const wishFor = (over: Partial<DesiredOrganization> = {}): DesiredOrganization => {
      taken += 1;
      const subdomain = `contract-${taken}`;
      return { name: 'Contract', subdomain, organizationType: 'Standard', suspended: false, ...over };
    };
    const make = async (over: Partial<DesiredOrganization> = {}) => {
      const uid = randomUUID();
      const desired = wishFor(over);
      const { organizationId } = await subject.organizations.upsert(uid, desired);
      return { uid, desired, organizationId };
    };

    test('there is none for an unknown uid', async () => {
      expect(await subject.organizations.find(randomUUID())).toBeUndefined();
    });

    test('one is created per uid, however often it is requested', async () => {
      const { uid, desired, organizationId } = await make();
      const again = await Promise.all([1, 2, 3].map(() => subject.organizations.upsert(uid, desired)));
      expect(new Set(again.map((each) => each.organizationId))).toEqual(new Set([organizationId]));
      expect(await subject.organizations.find(uid)).toMatchObject({
        organizationId,
        state: 'Active',
        name: 'Contract',
        subdomain: desired.subdomain,
        organizationType: 'Standard',
      });
    });

    test('different members are changed, absent members stay', async () => {
      const branding = { primaryColor: '#112233', secondaryColor: '#445566', companyTagline: 'ours' };
      const { uid, desired } = await make({ branding });
      const { branding: _, ...rest } = { ...desired, name: 'Renamed' };
      await subject.organizations.upsert(uid, rest);
      expect(await subject.organizations.find(uid)).toMatchObject({ name: 'Renamed', branding });
    });

    test('it is suspended and resumed', async () => {
      const { uid, desired } = await make({ suspended: true });
      expect(await subject.organizations.find(uid)).toMatchObject({ state: 'Suspended' });
      await subject.organizations.upsert(uid, { ...desired, suspended: false });
      expect(await subject.organizations.find(uid)).toMatchObject({ state: 'Active' });
    });

    test('a subdomain belongs to one organisation, which the refusal names', async () => {
      const { desired, organizationId } = await make();
      await expect(subject.organizations.upsert(randomUUID(), desired)).rejects.toMatchObject({
        code: 'SUBDOMAIN_CONFLICT',
        members: { organizationId, adoptable: false },
      });
    });

    test('subdomain and type are immutable', async () => {
      const { uid, desired } = await make();
      await expect(
        subject.organizations.upsert(uid, { ...desired, subdomain: 'elsewhere' }),
      ).rejects.toMatchObject({
        code: 'IMMUTABLE_FIELD',
      });
    });

    test.each(['Retain', 'Suspend'] as const)('%s lets another resource adopt it', async (policy) => {
      const { uid, desired, organizationId } = await make();
      await subject.organizations.remove(uid, policy);
      await subject.organizations.remove(uid, policy);
      expect(await subject.organizations.find(uid)).toBeUndefined();
      const rival = randomUUID();
      await expect(subject.organizations.upsert(rival, desired)).rejects.toMatchObject({
        members: { organizationId, adoptable: true },
      });
      const suspended = policy === 'Suspend';
      const adopted = await subject.organizations.upsert(rival, { ...desired, suspended, organizationId });
      expect(adopted).toMatchObject({ organizationId, state: suspended ? 'Suspended' : 'Active' });
      await expect(
        subject.organizations.upsert(randomUUID(), { ...desired, organizationId }),
      ).rejects.toMatchObject({ code: 'ORGANIZATION_BOUND' });
    });

    test('a missing one is not adopted, nor one of another subdomain', async () => {
      const organizationId = randomUUID();
      await expect(
        subject.organizations.upsert(randomUUID(), wishFor({ organizationId })),
      ).rejects.toMatchObject({ code: 'ORGANIZATION_NOT_FOUND' });
      const { uid, organizationId: found } = await make();
      await subject.organizations.remove(uid, 'Retain');
      await expect(
        subject.organizations.upsert(randomUUID(), wishFor({ organizationId: found })),
      ).rejects.toMatchObject({ code: 'ADOPTION_MISMATCH' });
    });

    test('Delete is final', async () => {
      const { uid, desired } = await make();
      await subject.organizations.remove(uid, 'Delete');
      await subject.organizations.remove(uid, 'Delete');
      expect(await subject.organizations.find(uid)).toMatchObject({ state: 'Terminating' });
      await expect(subject.organizations.upsert(uid, desired)).rejects.toMatchObject({
        code: 'ORGANIZATION_DELETED',
      });
    });

    test('nothing is removed for an unknown uid', async () => {
      await subject.organizations.remove(randomUUID(), 'Delete');
    });
  });
}

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { goodSpecsOf } from '../../api/testing/arbitraries.ts';
import { ORGANIZATION_ID, tenantOf } from '../testing/objects.ts';
import type { DesiredOrganization, OrganizationFacts } from './facts.ts';
import { planTenant, planTenantRemoval } from './plan.ts';

function organization(facts: Partial<OrganizationFacts> = {}): OrganizationFacts {
  return {
    organizationId: ORGANIZATION_ID,
    state: 'Active',
    name: 'Acme',
    subdomain: 'acme',
    organizationType: 'Standard',
    branding: {},
    userCount: 3,
    ...facts,
  };
}

const colours = { primaryColor: '#112233', secondaryColor: '#445566' };

describe('an existing organisation', () => {
  interface Case {
    readonly name: string;
    readonly spec?: Record<string, unknown>;
    readonly found?: Partial<OrganizationFacts>;
    readonly summary?: string;
    readonly state: string;
    readonly reason: string;
  }
  const working = { state: 'reconciling', reason: 'Progressing' };
  const refused = { state: 'stalled', reason: 'AdoptionRefused' };
  const done = { state: 'ready', reason: 'Reconciled' };
  const foreignId = '9a3f6c0e-91b4-4f0e-8f7a-56b2c1d0e9f8';
  const tagline = { ...colours, companyTagline: 'ours' };
  const cases: readonly Case[] = [
    { name: 'matches the spec', ...done },
    { name: 'has another name', spec: { displayName: 'New' }, summary: 'change its name to New', ...working },
    {
      name: 'has another colour',
      spec: { branding: colours },
      found: { branding: { ...colours, primaryColor: '#000000' } },
      summary: ': change primaryColor',
      ...working,
    },
    {
      name: 'has a tagline that the spec leaves to the API',
      spec: { branding: colours },
      found: { branding: tagline },
      ...done,
    },
    { name: 'has branding and the spec none', found: { branding: colours }, ...done },
    { name: 'must be suspended', spec: { suspended: true }, summary: 'suspend it', ...working },
    {
      name: 'is suspended as the spec requests',
      spec: { suspended: true },
      found: { state: 'Suspended' },
      state: 'ready',
      reason: 'Suspended',
    },
    {
      name: 'was suspended through the API',
      found: { state: 'Suspended' },
      summary: 'resume it',
      ...working,
    },
    { name: 'has another subdomain', found: { subdomain: 'acme2' }, ...refused },
    { name: 'is of another type', found: { organizationType: 'Public' }, ...refused },
    { name: 'is not the one to adopt', spec: { organizationId: foreignId }, ...refused },
    {
      name: 'was deleted through the API',
      found: { state: 'Terminating' },
      state: 'stalled',
      reason: 'InvalidReference',
    },
  ];
  test.each(cases)('$name', ({ spec, found, summary, state, reason }) => {
    const { steps, judgement } = planTenant(tenantOf(spec), organization(found));
    expect(steps.map((step) => step.summary)).toEqual(
      summary === undefined ? [] : [expect.stringContaining(summary)],
    );
    expect(judgement.outcome).toMatchObject({ state, reason });
    expect(judgement.status).toMatchObject({ organizationId: ORGANIZATION_ID, userCount: 3 });
  });

  test('keeps the branding that the spec does not set', () => {
    const tagline = { companyTagline: 'theirs' };
    const { steps } = planTenant(tenantOf({ branding: colours }), organization({ branding: tagline }));
    expect(steps).toMatchObject([{ action: 'upsert', desired: { branding: { ...colours, ...tagline } } }]);
  });
});

describe('a missing organisation', () => {
  test('is created', () => {
    const { steps, judgement } = planTenant(tenantOf({ suspended: true }), undefined);
    expect(steps).toEqual([
      {
        action: 'upsert',
        desired: { name: 'Acme', subdomain: 'acme', organizationType: 'Standard', suspended: true },
        summary: 'Create organisation Acme with the subdomain acme',
        disruption: 'sign-in-stops',
      },
    ]);
    expect(judgement).toMatchObject({ outcome: { state: 'reconciling' }, status: { state: 'Pending' } });
  });

  test('is adopted by its id', () => {
    const { steps } = planTenant(tenantOf({ organizationId: ORGANIZATION_ID }), undefined);
    expect(steps).toMatchObject([{ action: 'upsert', desired: { organizationId: ORGANIZATION_ID } }]);
  });

  test('is not created again when it was lost', () => {
    const lost = tenantOf({}, { status: { organizationId: ORGANIZATION_ID } });
    const { steps, judgement } = planTenant(lost, undefined);
    expect(steps).toEqual([]);
    expect(judgement.outcome).toMatchObject({ state: 'stalled', reason: 'InvalidReference' });
    expect(judgement.outcome.message).toContain('restore its database');
  });
});

describe('removal', () => {
  test.each([
    ['Suspend', 'sign-in-stops'],
    ['Retain', 'none'],
    ['Delete', 'data-deleted'],
  ])('%s', (deletionPolicy, disruption) => {
    const steps = planTenantRemoval(tenantOf({ deletionPolicy }), organization());
    expect(steps).toMatchObject([{ action: 'remove', policy: deletionPolicy, disruption }]);
  });

  test('has no steps for a missing or terminating organisation', () => {
    expect(planTenantRemoval(tenantOf(), undefined)).toEqual([]);
    expect(planTenantRemoval(tenantOf(), organization({ state: 'Terminating' }))).toEqual([]);
  });
});

/** The organisation after an upsert. */
function carriedOut(found: OrganizationFacts | undefined, desired: DesiredOrganization): OrganizationFacts {
  const { name, subdomain, organizationType, suspended, branding } = desired;
  const base = found ?? organization({ subdomain, organizationType });
  return { ...base, name, branding: branding ?? base.branding, state: suspended ? 'Suspended' : 'Active' };
}

test('from any state one round reaches the desired state, which then has no steps', () => {
  const found = fc.option(
    fc.record({
      state: fc.constantFrom('Active' as const, 'Suspended' as const),
      name: fc.string({ minLength: 1 }),
      branding: fc.dictionary(fc.constantFrom('primaryColor', 'companyTagline', 'logoUrl'), fc.string()),
    }),
    { nil: undefined },
  );
  const run = fc.property(goodSpecsOf.Tenant, found, (spec, facts) => {
    const tenant = tenantOf(spec);
    const { subdomain, organizationType } = tenant.spec;
    let organisation =
      facts === undefined ? undefined : organization({ ...facts, subdomain, organizationType });
    for (const step of planTenant(tenant, organisation).steps) {
      if (step.action === 'upsert') organisation = carriedOut(organisation, step.desired);
    }
    const again = planTenant(tenant, organisation);
    expect(again.steps).toEqual([]);
    expect(again.judgement.outcome.state).toBe('ready');
  });
  fc.assert(run);
});

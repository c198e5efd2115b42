import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DelegatedUse, type GrantFacts, judgeDelegatedUse, judgeGrant } from './delegation.ts';

const NOW = 1_795_000_000_000;
const CONTEXT = 'platform:register-attestation';
const GRANT: GrantFacts = {
  accessRight: 'ReadWrite',
  expiresAtMs: NOW + 1,
  ended: false,
  allowedContexts: [CONTEXT],
};
const USE: DelegatedUse = {
  purpose: 'sign',
  owningOrganizationId: 'org-1',
  callerOrganizationId: 'org-1',
  callerIsAdministrator: true,
  grant: GRANT,
  context: CONTEXT,
  hybridMode: false,
  nowMs: NOW,
};

describe('judgeDelegatedUse', () => {
  test('allows when every condition holds', () => {
    expect(judgeDelegatedUse(USE)).toBeUndefined();
    expect(judgeDelegatedUse({ ...USE, grant: { ...GRANT, expiresAtMs: undefined } })).toBeUndefined();
  });

  test.each([
    ['no grant', { grant: undefined }, 'GRANT_MISSING'],
    ['expires at this instant', { grant: { ...GRANT, expiresAtMs: NOW } }, 'GRANT_MISSING'],
    ['revoked', { grant: { ...GRANT, ended: true } }, 'GRANT_MISSING'],
    ['read only', { grant: { ...GRANT, accessRight: 'ReadOnly' } }, 'GRANT_INSUFFICIENT'],
    ['other organisation', { callerOrganizationId: 'org-2' }, 'ORGANIZATION_MISMATCH'],
    ['token without organisation', { callerOrganizationId: undefined }, 'ORGANIZATION_MISMATCH'],
    ['demoted', { callerIsAdministrator: false }, 'ADMINISTRATOR_REQUIRED'],
    ['unscoped grant', { grant: { ...GRANT, allowedContexts: [] } }, 'CONTEXT_NOT_GRANTED'],
    ['other context', { context: 'platform:blueprint-publish' }, 'CONTEXT_NOT_GRANTED'],
    [
      'an older grant names a context whose key signs only through its own routes',
      {
        context: 'platform:haip-issuer-signing',
        grant: { ...GRANT, allowedContexts: ['platform:haip-issuer-signing', CONTEXT] },
      },
      'CONTEXT_NOT_GRANTED',
    ],
    ['default key', { context: undefined }, 'CONTEXT_NOT_GRANTED'],
    ['hybrid', { hybridMode: true }, 'HYBRID_MODE_REFUSED'],
  ] as const)('refuses: %s', (_name, change, expected) => {
    expect(judgeDelegatedUse({ ...USE, ...change } as DelegatedUse)).toBe(expected);
  });

  test('reading needs membership of the organisation, but no Administrator', () => {
    const context = 'platform:payload-encryption';
    const grant = { ...GRANT, allowedContexts: [context] };
    const read = { ...USE, purpose: 'read', callerIsAdministrator: false, context, grant } as const;
    expect(judgeDelegatedUse(read)).toBeUndefined();
    expect(judgeDelegatedUse({ ...read, callerOrganizationId: 'org-2' })).toBe('ORGANIZATION_MISMATCH');
    expect(judgeDelegatedUse({ ...read, grant: GRANT })).toBe('CONTEXT_NOT_GRANTED');
    expect(judgeDelegatedUse({ ...read, grant: { ...grant, accessRight: 'ReadOnly' } })).toBe(
      'GRANT_INSUFFICIENT',
    );
    expect(judgeDelegatedUse({ ...read, purpose: 'sign' })).toBe('ADMINISTRATOR_REQUIRED');
  });

  test('a wallet of a person needs no organisation, but still a named context', () => {
    const personal = { ...USE, owningOrganizationId: undefined, callerIsAdministrator: false };
    expect(judgeDelegatedUse(personal)).toBeUndefined();
    expect(judgeDelegatedUse({ ...personal, context: undefined })).toBe('CONTEXT_NOT_GRANTED');
  });

  test('a single failed condition refuses, independent of the others', () => {
    const condition = fc.record({
      ended: fc.boolean(),
      expired: fc.boolean(),
      right: fc.constantFrom('ReadOnly', 'ReadWrite', 'Owner'),
      sameOrganization: fc.boolean(),
      administrator: fc.boolean(),
      scoped: fc.boolean(),
      hybrid: fc.boolean(),
    });
    fc.assert(
      fc.property(condition, (c) => {
        const use = {
          ...USE,
          callerOrganizationId: c.sameOrganization ? 'org-1' : 'org-2',
          callerIsAdministrator: c.administrator,
          hybridMode: c.hybrid,
          grant: {
            accessRight: c.right,
            ended: c.ended,
            expiresAtMs: c.expired ? NOW - 1 : NOW + 1,
            allowedContexts: c.scoped ? [CONTEXT] : [],
          },
        } as DelegatedUse;
        const broken = c.ended || c.expired || c.right === 'ReadOnly' || !c.sameOrganization;
        const allowed = !broken && c.administrator && c.scoped && !c.hybrid;
        expect(judgeDelegatedUse(use) === undefined).toBe(allowed);
      }),
    );
  });
});

describe('judgeGrant', () => {
  test('an organisation never grants Owner and always names contexts', () => {
    const scoped = { ownedByOrganization: true, allowedContexts: [CONTEXT] };
    expect(judgeGrant({ ...scoped, accessRight: 'ReadWrite' })).toBeUndefined();
    expect(judgeGrant({ ...scoped, accessRight: 'Owner' })).toBe('OWNER_NOT_GRANTABLE');
    expect(judgeGrant({ ...scoped, accessRight: 'ReadOnly', allowedContexts: [] })).toBe('SCOPE_REQUIRED');
  });

  test('a person may grant every right, with or without contexts', () => {
    expect(
      judgeGrant({ ownedByOrganization: false, accessRight: 'Owner', allowedContexts: [] }),
    ).toBeUndefined();
  });
});

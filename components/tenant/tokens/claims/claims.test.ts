import { expect, it } from 'vitest';
import { serviceClaims, userClaims } from './claims.ts';

const frame = { issuedAt: 1_000, notBefore: 1_000, lifetimeSeconds: 3600, tokenId: 'jti-1' };
const subject = {
  identityId: 'identity-1',
  platformUserId: 'human-1',
  organizationId: 'org-1',
  organizationName: 'Org',
  email: 'a@example.org',
  emailVerified: true,
  displayName: 'A',
  roles: ['Administrator'],
  profileCompleted: true,
  passwordChangeRequired: false,
};

it('a platform token carries every claim of the table', () => {
  const grant = {
    tier: 'platform',
    familyId: 'family-1',
    amr: ['pwd'],
    acr: 'basic',
    authTime: 999,
  } as const;
  expect(userClaims('demo', frame, subject, grant)).toEqual({
    iss: 'urn:platform:demo',
    aud: ['demo:platform'],
    iat: 1_000,
    nbf: 1_000,
    exp: 4_600,
    jti: 'jti-1',
    sub: 'identity-1',
    platform_user_id: 'human-1',
    org_id: 'org-1',
    org_name: 'Org',
    email: 'a@example.org',
    email_verified: true,
    name: 'A',
    roles: ['Administrator'],
    token_type: 'user',
    token_use: 'access',
    tier: 'platform',
    client_id: 'first-party',
    auth_time: 999,
    amr: ['pwd'],
    acr: 'basic',
    sid: 'family-1',
  });
});

it('a consumer token never carries roles and names both audiences', () => {
  const grant = {
    tier: 'consumer',
    familyId: 'family-1',
    amr: ['pwd', 'otp'],
    acr: 'strong',
    authTime: 999,
  } as const;
  const claims = userClaims('demo', frame, subject, grant);
  expect(claims).not.toHaveProperty('roles');
  expect(claims).toMatchObject({ aud: ['demo:consumer', 'platform:citizen-wallet'], acr: 'strong' });
});

it('says what the person has to do first, and nothing otherwise', () => {
  const grant = { tier: 'consumer', familyId: 'f', amr: ['fed'], acr: 'basic', authTime: 999 } as const;
  const due = { ...subject, profileCompleted: false, passwordChangeRequired: true };
  expect(userClaims('demo', frame, due, grant)).toMatchObject({
    profile_completed: false,
    password_change_required: true,
  });
  const claims = userClaims('demo', frame, subject, grant);
  expect(claims).not.toHaveProperty('profile_completed');
  expect(claims).not.toHaveProperty('password_change_required');
});

it('only platform tokens of a person with a wallet carry it', () => {
  const grant = { familyId: 'family-1', amr: ['pwd'], acr: 'basic', authTime: 999 } as const;
  const owner = { ...subject, walletAddress: 'w1first' };
  const claimsOf = (tier: 'platform' | 'consumer', of: typeof subject) =>
    userClaims('demo', frame, of, { ...grant, tier });
  expect(claimsOf('platform', owner)).toMatchObject({ wallet_address: 'w1first' });
  expect(claimsOf('consumer', owner)).not.toHaveProperty('wallet_address');
  expect(claimsOf('platform', subject)).not.toHaveProperty('wallet_address');
});

it('a service token carries the signing claim and the delegation', () => {
  const service = { principalId: 'p', clientId: 'service-x', serviceName: 'x', canSignSystem: false };
  const plain = serviceClaims('demo', frame, service, { scopes: ['a', 'b'] });
  expect(plain).toMatchObject({ aud: ['demo:service'], scope: 'a b', tier: 'service', sub: 'p' });
  expect(plain).not.toHaveProperty('can_sign_system');
  expect(plain).not.toHaveProperty('delegated_user_id');
  const delegated = serviceClaims(
    'demo',
    frame,
    { ...service, canSignSystem: true },
    {
      scopes: [],
      delegation: { userId: 'u', platformUserId: 'h', organizationId: 'o', roles: ['Designer'] },
    },
  );
  expect(delegated).toMatchObject({
    can_sign_system: true,
    sub: 'p',
    delegated_user_id: 'u',
    delegated_platform_user_id: 'h',
    delegated_org_id: 'o',
    delegated_roles: ['Designer'],
  });
  for (const claim of ['delegated_sid', 'platform_user_id', 'roles', 'org_id', 'sid']) {
    expect(delegated).not.toHaveProperty(claim);
  }
});

import { describe, expect, it } from 'vitest';
import { type AccessClaims, callerOf, parseAccessClaims } from './claims.ts';
import { type Decision, decide, mayActFor, POLICY_NAMES, type PolicyName } from './policies.ts';
import { findRole, highestRole, isRole } from './roles.ts';
import { isScope, parseScopeClaim } from './scopes.ts';
import { findServiceName, listServices, parseServiceName } from './services.ts';
import { audiencesOf, isEntitledToPlatform, issuerOf } from './tiers.ts';
import { INSTALLATION_NAME, SYSTEM_ORGANIZATION_ID } from './well-known.ts';

const installation = 'acme';
const base = {
  iss: 'urn:platform:acme',
  iat: 100,
  nbf: 100,
  exp: 3700,
  jti: 'j',
  token_use: 'access',
  sub: 's',
};
const user = {
  ...base,
  token_type: 'user',
  client_id: 'first-party',
  platform_user_id: 'p',
  org_id: 'org',
  sid: 'family',
};
const platform = { ...user, tier: 'platform', aud: ['acme:platform'], roles: ['User'] };
const consumer = { ...user, tier: 'consumer', aud: ['acme:consumer', 'platform:citizen-wallet'] };
const service = {
  ...base,
  token_type: 'service',
  tier: 'service',
  aud: ['acme:service'],
  client_id: 'service-register',
  scope: 'a b',
};
const callerFrom = (claims: object) => callerOf(parseAccessClaims(claims), installation);

const callers = {
  anonymous: undefined,
  user: callerFrom(platform),
  administrator: callerFrom({ ...platform, roles: ['Administrator'] }),
  auditor: callerFrom({ ...platform, roles: ['Auditor'] }),
  designer: callerFrom({ ...platform, roles: ['Designer'] }),
  strayAdmin: callerFrom({ ...platform, roles: ['SystemAdmin'] }),
  systemAdmin: callerFrom({ ...platform, roles: ['SystemAdmin'], org_id: SYSTEM_ORGANIZATION_ID }),
  publisher: callerFrom({ ...platform, can_publish_blueprint: true }),
  homeless: callerFrom({ ...platform, roles: ['Administrator'], org_id: undefined }),
  consumer: callerFrom(consumer),
  service: callerFrom(service),
  validator: callerFrom({ ...service, client_id: 'validator-0', scope: 'dockets:write registers:read' }),
  blueprint: callerFrom({ ...service, client_id: 'service-blueprint', scope: ['persona:crypto'] }),
  delegatedBlueprint: callerFrom({
    ...service,
    client_id: 'service-blueprint',
    delegated_user_id: 'u',
  }),
  delegated: callerFrom({ ...service, delegated_user_id: 'u' }),
  operator: callerFrom({ ...service, client_id: 'service-operator' }),
};
type Who = keyof typeof callers;

const everybody = Object.keys(callers).filter((who) => who !== 'anonymous');
const admins = ['administrator', 'strayAdmin', 'systemAdmin', 'homeless'];
const services = ['service', 'validator', 'blueprint', 'delegated', 'delegatedBlueprint', 'operator'];
const people = everybody.filter((who) => !services.includes(who));
const platformPeople = people.filter((who) => who !== 'consumer');

const ALLOWED: Readonly<Record<PolicyName, readonly string[]>> = {
  Anonymous: [...everybody, 'anonymous'],
  RequireAuthenticated: everybody,
  RequirePlatformUser: people,
  RequireConsumerAudience: ['consumer'],
  RequirePlatformAudience: platformPeople,
  RequireService: services,
  RequireOperator: ['operator'],
  RequireBlueprintService: ['blueprint'],
  RequireAdministrator: admins,
  RequireAuditor: [...admins, 'auditor'],
  RequireSystemAdmin: ['systemAdmin'],
  RequirePersonaCrypto: ['blueprint'],
  RequireDelegatedAuthority: ['delegated', 'delegatedBlueprint'],
  CanManageRegisters: admins.filter((who) => who !== 'homeless'),
  CanCreateSystemRegisters: ['systemAdmin'],
  CanManagePeers: everybody.filter((who) => who !== 'homeless'),
  CanWriteDockets: ['validator'],
  CanManageBlueprints: [...services, 'administrator', 'strayAdmin', 'systemAdmin', 'designer'],
  CanPublishBlueprints: ['administrator', 'strayAdmin', 'systemAdmin', 'publisher'],
};

describe('policies', () => {
  it('a delegated token names its person and gives the service none of their authority', () => {
    const delegated = callerFrom({
      ...service,
      delegated_user_id: 'u',
      delegated_platform_user_id: 'h',
      delegated_org_id: 'o',
      delegated_roles: ['Administrator', 'Emperor'],
      delegated_sid: 's',
    });
    expect(delegated).toMatchObject({
      kind: 'service',
      roles: [],
      platformUserId: undefined,
      organizationId: undefined,
      delegation: {
        userId: 'u',
        platformUserId: 'h',
        organizationId: 'o',
        roles: ['Administrator'],
        sessionId: 's',
      },
    });
    expect(callers.service.delegation).toBeUndefined();
    expect(callerFrom({ ...platform, delegated_user_id: 'u' }).delegation).toBeUndefined();
  });

  it.each(POLICY_NAMES)('%s admits exactly the callers it should', (policy) => {
    for (const who of Object.keys(callers) as Who[]) {
      const refused: Decision = who === 'anonymous' ? 'unauthenticated' : 'forbidden';
      expect(decide(policy, callers[who]), who).toBe(ALLOWED[policy].includes(who) ? 'allow' : refused);
    }
  });

  it('a route of an organisation admits its own people and system administrators', () => {
    expect(mayActFor(callers.user, 'org')).toBe(true);
    expect(mayActFor(callers.user, 'other')).toBe(false);
    expect(mayActFor(callers.strayAdmin, 'other')).toBe(false);
    expect(mayActFor(callers.systemAdmin, 'other')).toBe(true);
    expect(mayActFor(callers.service, 'org')).toBe(false);
  });
});

describe('claims', () => {
  it('become a caller', () => {
    expect(
      callerFrom({ ...platform, wallet_address: 'w', roles: ['Administrator', 'Wizard'] }),
    ).toMatchObject({
      kind: 'user',
      subject: 's',
      platformUserId: 'p',
      organizationId: 'org',
      roles: ['Administrator'],
      tier: 'platform',
      walletAddress: 'w',
      sessionId: 'family',
      tokenId: 'j',
      issuedAtMs: 100_000,
      expiresAtMs: 3_700_000,
      canSignSystem: false,
      scopes: [],
    });
    expect(callerFrom({ ...service, can_sign_system: true })).toMatchObject({
      kind: 'service',
      canSignSystem: true,
      scopes: ['a', 'b'],
    });
    expect(callerFrom({ ...platform, can_sign_system: true }).canSignSystem).toBe(false);
    expect(callerFrom({ ...platform, scope: 'dockets:write' }).scopes).toEqual([]);
    expect(callerFrom({ ...platform, aud: 'acme:platform' }).tier).toBe('platform');
  });

  it.each<readonly [string, object]>([
    ['another issuer', { ...platform, iss: 'urn:platform:other' }],
    ['another installation', { ...platform, aud: ['other:platform'] }],
    ['the audience of another tier', { ...platform, aud: ['acme:consumer'] }],
    ['audiences of two tiers', { ...platform, aud: ['acme:platform', 'acme:service'] }],
    ['no audience', { ...platform, aud: [] }],
    ['a user with the service tier', { ...service, token_type: 'user' }],
    ['a service with the platform tier', { ...platform, token_type: 'service' }],
    ['roles of a consumer', { ...consumer, roles: ['Administrator'] }],
    ['a platform token without roles', { ...platform, roles: [] }],
    ['a refresh token', { ...platform, token_use: 'refresh' }],
    ['an enrolment', { ...platform, tier: 'enrol-session' }],
    ['no end', { ...platform, exp: undefined }],
    ['a text for a time', { ...platform, exp: '3700' }],
    ['nothing', {}],
  ])('with %s are refused', (_name, claims) => {
    expect(() => callerFrom(claims)).toThrow(expect.objectContaining({ kind: 'unauthenticated' }));
  });

  it('keep unknown members', () => {
    const claims: AccessClaims = parseAccessClaims({ ...platform, extra: 1 });
    expect(claims['extra']).toBe(1);
  });
});

describe('tiers, roles, scopes, ids', () => {
  it('audiences and entitlement', () => {
    expect(audiencesOf('acme', 'consumer')).toEqual(['acme:consumer', 'platform:citizen-wallet']);
    expect(audiencesOf('acme', 'service')).toEqual(['acme:service']);
    expect(issuerOf('acme')).toBe('urn:platform:acme');
    expect(isEntitledToPlatform('Standard', ['User'])).toBe(true);
    expect(isEntitledToPlatform('Standard', [])).toBe(false);
    expect(isEntitledToPlatform('Public', ['Administrator'])).toBe(false);
  });

  it('roles', () => {
    expect(isRole('administrator')).toBe(false);
    expect(findRole(' administrator')).toBe('Administrator');
    expect(findRole('root')).toBeUndefined();
    expect(highestRole(['User', 'Auditor', 'Administrator'])).toBe('Administrator');
    expect(highestRole([])).toBeUndefined();
  });

  it('services, their scopes and their right to the signing component', () => {
    const services = listServices();
    for (const { scopes } of services) expect(scopes.every(isScope)).toBe(true);
    const writers = services.filter(({ scopes }) => scopes.includes('dockets:write'));
    expect(writers.map(({ name }) => name).sort()).toEqual(['peer', 'validator']);
    const signers = services.filter(({ signsForSystem }) => signsForSystem === true);
    expect(signers.map(({ name }) => name)).toEqual(['register', 'validator']);
    expect(parseServiceName('service-register')).toBe('register');
    expect(findServiceName('validator-0')).toBe('validator');
    expect(findServiceName('validator-main-3')).toBe('validator');
    for (const clientId of [
      'service-validator',
      'validator-',
      'register',
      'service-',
      'service-x',
      'validator-A',
    ]) {
      expect(findServiceName(clientId)).toBeUndefined();
    }
    expect(() => parseServiceName('x')).toThrow(expect.objectContaining({ code: 'UNKNOWN_CLIENT_ID' }));
    expect(parseScopeClaim(undefined)).toEqual([]);
    expect(parseScopeClaim('a  b a')).toEqual(['a', 'b']);
    expect(parseScopeClaim(['a b', 'c'])).toEqual(['a', 'b', 'c']);
  });

  it('well-known ids are distinct', () => {
    const ids = listServices().map(({ principalId }) => principalId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(INSTALLATION_NAME.test('dev-local')).toBe(true);
    expect(INSTALLATION_NAME.test('acme.chancery.local')).toBe(true);
    expect(INSTALLATION_NAME.test('Dev')).toBe(false);
    expect(INSTALLATION_NAME.test('acme.')).toBe(false);
    expect(INSTALLATION_NAME.test('a'.repeat(64))).toBe(false);
  });
});

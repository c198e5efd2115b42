import { z } from 'zod';
import { readableLine, readableName } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { originOf } from '../../requests/origin.ts';
import { ownOrganization } from '../authority.ts';
import {
  discover,
  getProvider,
  type ProviderDeps,
  putProvider,
  removeProvider,
  testProvider,
  toggleProvider,
} from './configure.ts';
import { PRESETS } from './preset.ts';
import type { StoredProvider } from './store.ts';

const issuerUrl = z
  .string()
  .trim()
  .min(1)
  .max(2048)
  .describe('As the provider names itself; its configuration is read below it.');
const text = z.string().nullable();

const providerSchema = z
  .object({
    id: z.string(),
    providerPreset: z.enum(PRESETS),
    displayName: z.string(),
    issuerUrl: z.string(),
    clientId: z.string(),
    hasClientSecret: z.boolean().describe('The secret itself is never shown.'),
    isEnabled: z.boolean(),
    scopes: z.array(z.string()),
    authorizationEndpoint: text,
    tokenEndpoint: text,
    userInfoEndpoint: text,
    jwksUri: text,
    discoveryFetchedAt: text,
    discoveryError: text.describe('Why the provider could not be read.'),
  })
  .meta({ id: 'IdentityProvider' });

function present(provider: StoredProvider): z.output<typeof providerSchema> {
  const { metadata } = provider;
  return {
    id: provider.id,
    providerPreset: provider.preset,
    displayName: provider.displayName,
    issuerUrl: provider.issuerUrl,
    clientId: provider.clientId,
    hasClientSecret: provider.clientSecret !== undefined,
    isEnabled: provider.isEnabled,
    scopes: [...provider.scopes],
    authorizationEndpoint: metadata?.authorization_endpoint ?? null,
    tokenEndpoint: metadata?.token_endpoint ?? null,
    userInfoEndpoint: metadata?.userinfo_endpoint ?? null,
    jwksUri: metadata?.jwks_uri ?? null,
    discoveryFetchedAt: provider.discoveredAtMs === undefined ? null : apiTimestamp(provider.discoveredAtMs),
    discoveryError: provider.discoveryError ?? null,
  };
}

const settingsSchema = z.object({
  providerPreset: z.enum(PRESETS),
  issuerUrl,
  clientId: readableLine.min(1).max(512),
  clientSecret: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe('Kept when absent, unless the issuer is new.'),
  displayName: readableName.min(1).max(100).optional(),
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/))
    .max(20)
    .default(['openid', 'profile', 'email'])
    .refine((scopes) => scopes.includes('openid'), 'openid is required'),
});

const path = '/api/organizations/:organizationId/idp';

function common(deps: ProviderDeps) {
  return {
    tag: 'Identity providers',
    policy: 'RequireAdministrator',
    params: z.object({ organizationId: identifier }),
    resource: ownOrganization(() => deps.db.read),
  } as const;
}

const foreign = refusals('FOREIGN_ORGANIZATION', 'ORGANIZATION_NOT_FOUND');

/** The identity provider of an organisation (specification document 1, section 4). */
export function mountIdentityProvider(app: App, deps: ProviderDeps): void {
  mountConfiguration(app, deps);
  mountTrials(app, deps);
}

function mountConfiguration(app: App, deps: ProviderDeps): void {
  const route = common(deps);
  addRoute(app, {
    ...route,
    method: 'GET',
    path,
    operationId: 'getIdentityProvider',
    summary: 'The identity provider of an organisation',
    rateLimit: 'Api',
    answers: { 200: json('The configuration.', providerSchema) },
    refusals: [...foreign, ...refusals('IDP_NOT_FOUND')],
    handle: async ({ resource }) => present(await getProvider(deps, resource.id)),
  });
  addRoute(app, {
    ...route,
    method: 'PUT',
    path,
    operationId: 'upsertIdentityProvider',
    summary: 'Configure the identity provider of an organisation',
    description:
      'What the provider publishes is read at once. When that fails the configuration is kept, switched off, with `discoveryError`. A new configuration is switched off.',
    rateLimit: 'Strict',
    body: {
      schema: settingsSchema,
      example: {
        providerPreset: 'GenericOidc',
        issuerUrl: 'https://id.example.org',
        clientId: 'chancery',
        clientSecret: 'of the provider',
      },
    },
    answers: { 200: json('The configuration.', providerSchema) },
    refusals: [...foreign, ...refusals('DISCOVERY_FAILED', 'CLIENT_SECRET_REQUIRED')],
    handle: async ({ resource, body, caller, request }) =>
      present(
        await putProvider(deps, body, { organizationId: resource.id, caller, origin: originOf(request) }),
      ),
  });
  addRoute(app, {
    ...route,
    method: 'DELETE',
    path,
    operationId: 'deleteIdentityProvider',
    summary: 'Remove the identity provider of an organisation',
    rateLimit: 'Strict',
    answers: { 204: empty('It is removed, and signs in no member any longer.') },
    refusals: [...foreign, ...refusals('IDP_NOT_FOUND')],
    handle: ({ resource, caller, request }) =>
      removeProvider(deps, { organizationId: resource.id, caller, origin: originOf(request) }),
  });
  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${path}/toggle`,
    operationId: 'switchIdentityProvider',
    summary: 'Switch the identity provider of an organisation on or off',
    rateLimit: 'Strict',
    body: { schema: z.object({ enabled: z.boolean() }), example: { enabled: true } },
    answers: { 200: json('The configuration.', providerSchema) },
    refusals: [...foreign, ...refusals('IDP_NOT_FOUND', 'DISCOVERY_REQUIRED')],
    handle: async ({ resource, body, caller, request }) =>
      present(
        await toggleProvider(deps, body.enabled, {
          organizationId: resource.id,
          caller,
          origin: originOf(request),
        }),
      ),
  });
}

function mountTrials(app: App, deps: ProviderDeps): void {
  const route = { ...common(deps), rateLimit: 'Strict', method: 'POST' } as const;
  addRoute(app, {
    ...route,
    path: `${path}/discover`,
    operationId: 'getProviderMetadata',
    summary: 'Read what a provider publishes about itself',
    body: { schema: z.object({ issuerUrl }), example: { issuerUrl: 'https://id.example.org' } },
    answers: {
      200: json(
        'What it publishes.',
        z
          .object({
            issuer: z.string(),
            authorizationEndpoint: z.string(),
            tokenEndpoint: z.string(),
            userInfoEndpoint: text,
            jwksUri: text,
            supportedScopes: z.array(z.string()),
          })
          .meta({ id: 'DiscoveredProvider' }),
      ),
    },
    refusals: [...foreign, ...refusals('DISCOVERY_FAILED')],
    handle: async ({ body }) => {
      const found = await discover(deps, body.issuerUrl);
      return {
        issuer: found.issuer,
        authorizationEndpoint: found.authorization_endpoint,
        tokenEndpoint: found.token_endpoint,
        userInfoEndpoint: found.userinfo_endpoint ?? null,
        jwksUri: found.jwks_uri ?? null,
        supportedScopes: found.scopes_supported ?? [],
      };
    },
  });
  addRoute(app, {
    ...route,
    path: `${path}/test`,
    operationId: 'checkIdentityProvider',
    summary: 'Test the identity provider of an organisation',
    answers: {
      200: json(
        'What the test found.',
        z
          .object({
            success: z.boolean(),
            message: z.string(),
            method: z.enum(['client_credentials', 'discovery']),
            discoveredScopes: z.array(z.string()),
          })
          .meta({ id: 'IdentityProviderTest' }),
      ),
    },
    refusals: [...foreign, ...refusals('IDP_NOT_FOUND')],
    handle: async ({ resource }) => {
      const { scopes, ...result } = await testProvider(deps, resource.id);
      return { ...result, discoveredScopes: [...scopes] };
    },
  });
}

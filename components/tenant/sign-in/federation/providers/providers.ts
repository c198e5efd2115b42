import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import type { Outbound } from '#kit/outbound/outbound.ts';
import type { ProviderMetadata } from '../upstream/discovery.ts';
import { identityOf, isTrue, type UpstreamIdentity } from '../upstream/identity.ts';
import {
  authenticateBySecret,
  authenticateInBody,
  type Upstream,
  type UpstreamAnswer,
} from '../upstream/upstream.ts';
import { createAppleSecret } from './apple.ts';
import { identifyGithub } from './github.ts';
import type { SocialProviderName, SocialSettings } from './settings.ts';

/** A social provider that is configured. */
export interface SocialProvider {
  readonly name: SocialProviderName;
  readonly upstream: Upstream;
  /** Who the answer is about, by the rules of the provider. @throws when it is malformed */
  identify(answer: UpstreamAnswer): Promise<UpstreamIdentity>;
}

interface ProviderDeps {
  readonly door: Outbound;
  readonly clock: Clock;
}

/** What a provider publishes; it hardly ever changes, so that nothing is asked at the start. */
interface Published {
  readonly issuer: string;
  readonly authorization: string;
  readonly token: string;
  readonly profile?: string;
  readonly keys?: string;
  readonly scopes: readonly string[];
  readonly authentication: 'client_secret_basic' | 'client_secret_post';
}

const published: Readonly<Record<SocialProviderName, Published>> = {
  google: {
    issuer: 'https://accounts.google.com',
    authorization: 'https://accounts.google.com/o/oauth2/v2/auth',
    token: 'https://oauth2.googleapis.com/token',
    profile: 'https://openidconnect.googleapis.com/v1/userinfo',
    keys: 'https://www.googleapis.com/oauth2/v3/certs',
    scopes: ['openid', 'email', 'profile'],
    authentication: 'client_secret_basic',
  },
  microsoft: {
    issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
    authorization: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    token: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    profile: 'https://graph.microsoft.com/oidc/userinfo',
    keys: 'https://login.microsoftonline.com/common/discovery/v2.0/keys',
    scopes: ['openid', 'email', 'profile'],
    authentication: 'client_secret_post',
  },
  github: {
    issuer: 'https://github.com',
    authorization: 'https://github.com/login/oauth/authorize',
    token: 'https://github.com/login/oauth/access_token',
    profile: 'https://api.github.com/user',
    scopes: ['read:user', 'user:email'],
    authentication: 'client_secret_post',
  },
  apple: {
    issuer: 'https://appleid.apple.com',
    authorization: 'https://appleid.apple.com/auth/authorize',
    token: 'https://appleid.apple.com/auth/token',
    keys: 'https://appleid.apple.com/auth/keys',
    scopes: ['openid', 'email', 'name'],
    authentication: 'client_secret_post',
  },
};

const githubEmails = 'https://api.github.com/user/emails';

/** The tenant of Microsoft's personal accounts; their addresses are verified. */
const personalTenant = '9188040d-6c67-4b5b-b112-36a304b66dad';

/** The configured providers, by name. */
export function createSocialProviders(
  settings: readonly SocialSettings[],
  deps: ProviderDeps,
): ReadonlyMap<string, SocialProvider> {
  return new Map(settings.map((one) => [one.name, createProvider(one, deps)]));
}

function createProvider(settings: SocialSettings, deps: ProviderDeps): SocialProvider {
  const { name } = settings;
  const metadata = metadataOf(settings);
  const upstream: Upstream = {
    metadata,
    clientId: settings.clientId,
    authenticate: authenticationOf(settings, metadata, deps.clock),
    scopes: settings.scopes ?? published[name].scopes,
    isOpenId: name !== 'github',
    usesPkce: settings.supportsPkce,
    // Apple sends the name and the address in a form alone.
    ...(name === 'apple' && { parameters: { response_mode: 'form_post' } }),
    ...(name === 'microsoft' && { issuerOf: (claims) => issuerOfTenant(metadata.issuer, claims) }),
  };
  return { name, upstream, identify: identifier(settings, deps) };
}

function metadataOf(settings: SocialSettings): ProviderMetadata {
  const defaults = published[settings.name];
  const profile = settings.userInfoEndpoint ?? defaults.profile;
  const keys = settings.jwksUri ?? defaults.keys;
  return {
    issuer: settings.issuer ?? defaults.issuer,
    authorization_endpoint: settings.authorizationEndpoint ?? defaults.authorization,
    token_endpoint: settings.tokenEndpoint ?? defaults.token,
    ...(profile !== undefined && { userinfo_endpoint: profile }),
    ...(keys !== undefined && { jwks_uri: keys }),
    token_endpoint_auth_methods_supported: [defaults.authentication],
  };
}

function authenticationOf(
  settings: SocialSettings,
  metadata: ProviderMetadata,
  clock: Clock,
): Upstream['authenticate'] {
  if (settings.name !== 'apple') {
    const authentication = authenticateBySecret(metadata, settings.clientSecret);
    return async () => authentication;
  }
  const makeSecret = createAppleSecret(settings, clock);
  return async () => authenticateInBody(await makeSecret());
}

function identifier(settings: SocialSettings, { door }: ProviderDeps): SocialProvider['identify'] {
  if (settings.name === 'microsoft') return async ({ claims }) => identifyMicrosoft(claims);
  if (settings.name !== 'github') return async ({ claims }) => identityOf(claims);
  const profileUrl = settings.userInfoEndpoint ?? published.github.profile ?? '';
  const emailsUrl = settings.emailsEndpoint ?? githubEmails;
  return ({ accessToken }) => identifyGithub({ door, profileUrl, emailsUrl }, accessToken);
}

/** Anyone may own a tenant and write any address there: only what Microsoft has verified counts. */
function identifyMicrosoft(claims: UpstreamAnswer['claims']): UpstreamIdentity {
  const { isEmailVerified: _, ...identity } = identityOf(claims);
  const { xms_edov: isOwner } = claims;
  const isVerified = isTrue(isOwner) || isOwner === 1 || isOwner === '1' || claims['tid'] === personalTenant;
  return {
    ...identity,
    isEmailVerified: isVerified && claims['email'] !== undefined && identity.email !== undefined,
  };
}

/** The issuer of a token for accounts of any tenant names the tenant of the person. @throws ZodError without one */
function issuerOfTenant(template: string, claims: UpstreamAnswer['claims']): string {
  return template.replace('{tenantid}', z.guid().parse(claims['tid']));
}

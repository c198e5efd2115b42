import { decodeJwt } from 'jose';
import * as oauth from 'oauth4webapi';
import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import type { Outbound } from '#kit/outbound/outbound.ts';
import type { ProviderMetadata } from './discovery.ts';

/** This installation as a client of a provider. */
export interface Upstream {
  readonly metadata: ProviderMetadata;
  readonly clientId: string;
  readonly authenticate: () => Promise<oauth.ClientAuth>;
  readonly scopes: readonly string[];
  /** OpenID Connect with an ID token; plain OAuth 2.0 otherwise. */
  readonly isOpenId: boolean;
  readonly usesPkce: boolean;
  /** Further parameters of the authorization request. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** The issuer that a token must name, where it depends on the token. */
  readonly issuerOf?: (claims: Readonly<Record<string, unknown>>) => string;
}

/** What the provider said about the person, verified as its protocol has it. */
export interface UpstreamAnswer {
  /** Claims of the ID token, and of the userinfo endpoint where the token has no address. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly accessToken: string;
}

/** Signature algorithms of ID tokens that are accepted; `none` and the symmetric ones are not. */
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'];

/** Clocks of providers may differ by this much. */
const toleranceSeconds = 30;
const maxServers = 1_000;

/** What an authorization request is made of, and its answer is judged by. */
interface Exchange {
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string | undefined;
  /** PKCE (RFC 7636). */
  readonly verifier: string | undefined;
}

/** Client of any provider: OAuth 2.0 and OpenID Connect by `oauth4webapi`, through the door for foreign addresses. */
export interface UpstreamClient {
  /**
   * Judges the parameters of the callback, redeems the code and verifies the ID token: signature, issuer, audience, times,
   * nonce (OpenID Connect Core 1.0, 3.1.3.7; RFC 9207).
   *
   * @throws errors of the library and of the door; callers answer all of them alike
   */
  redeem(upstream: Upstream, exchange: Exchange, parameters: URLSearchParams): Promise<UpstreamAnswer>;
  /** Whether the client's secret is accepted (RFC 6749, 4.4). @throws as `redeem` */
  testCredentials(upstream: Upstream): Promise<void>;
}

/** A nonce and a verifier for one visit. */
export function prepareExchange({ isOpenId, usesPkce }: Upstream): Pick<Exchange, 'nonce' | 'verifier'> {
  return {
    nonce: isOpenId ? oauth.generateRandomNonce() : undefined,
    verifier: usesPkce ? oauth.generateRandomCodeVerifier() : undefined,
  };
}

/** The address that the browser opens: the code flow with PKCE, by S256 alone. */
export async function authorizationUrl(
  upstream: Upstream,
  { redirectUri, state, nonce, verifier }: Exchange,
  extra: Readonly<Record<string, string>> = {},
): Promise<string> {
  const url = new URL(upstream.metadata.authorization_endpoint);
  const parameters = {
    ...upstream.parameters,
    ...extra,
    client_id: upstream.clientId,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: upstream.scopes.join(' '),
    state,
    ...(nonce !== undefined && { nonce }),
    ...(verifier !== undefined && {
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

interface ClientDeps {
  readonly door: Outbound;
  readonly clock: Clock;
}

export function createUpstreamClient({ door, clock }: ClientDeps): UpstreamClient {
  const servers = new Map<string, oauth.AuthorizationServer>();
  // The door refuses what is not https, except the origins that the installation allows.
  const options = {
    [oauth.customFetch]: (url: string, init: unknown) => door.fetch(url, init as RequestInit),
    [oauth.allowInsecureRequests]: true,
  };

  /** The library keeps the keys of a server with the object that describes it, and reads them once a minute at most. */
  function serverOf(metadata: ProviderMetadata): oauth.AuthorizationServer {
    const key = JSON.stringify(metadata);
    const known = servers.get(key);
    if (known !== undefined) return known;
    const [oldest] = servers.keys();
    if (servers.size >= maxServers && oldest !== undefined) servers.delete(oldest);
    const server = describe(metadata);
    servers.set(key, server);
    return server;
  }

  /** The server that must have issued the token of a response. */
  async function issuingServer({ metadata, issuerOf }: Upstream, response: Response) {
    if (issuerOf === undefined) return serverOf(metadata);
    return serverOf({ ...metadata, issuer: issuerOf(await unverifiedClaims(response.clone())) });
  }

  const clientOf = ({ clientId }: Upstream): oauth.Client => ({
    client_id: clientId,
    [oauth.clockSkew]: Math.round((clock.nowMs() - Date.now()) / 1_000),
    [oauth.clockTolerance]: toleranceSeconds,
  });

  return {
    async redeem(upstream, { redirectUri, state, nonce, verifier }, parameters) {
      const [asked, client] = [serverOf(upstream.metadata), clientOf(upstream)];
      const judged = oauth.validateAuthResponse(asked, client, parameters, state);
      const response = await oauth.authorizationCodeGrantRequest(
        asked,
        client,
        await upstream.authenticate(),
        judged,
        redirectUri,
        verifier ?? oauth.nopkce,
        options,
      );
      const server = await issuingServer(upstream, response);
      const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
        expectedNonce: nonce ?? oauth.expectNoNonce,
        requireIdToken: upstream.isOpenId,
      });
      const accessToken = tokens.access_token;
      if (!upstream.isOpenId) return { claims: {}, accessToken };
      await oauth.validateApplicationLevelSignature(server, response, options);
      const claims = oauth.getValidatedIdTokenClaims(tokens);
      if (claims === undefined) throw new Error('the answer has no ID token');
      const { userinfo_endpoint: endpoint } = server;
      if (claims['email'] !== undefined || endpoint === undefined) return { claims, accessToken };
      const answer = await oauth.userInfoRequest(server, client, accessToken, options);
      const more = await oauth.processUserInfoResponse(server, client, claims.sub, answer);
      return { claims: { ...more, ...claims }, accessToken };
    },
    async testCredentials(upstream) {
      const [server, client] = [serverOf(upstream.metadata), clientOf(upstream)];
      const auth = await upstream.authenticate();
      const response = await oauth.clientCredentialsGrantRequest(server, client, auth, {}, options);
      await oauth.processClientCredentialsResponse(server, client, response);
    },
  };
}

function describe(metadata: ProviderMetadata): oauth.AuthorizationServer {
  const announced = metadata.id_token_signing_alg_values_supported ?? ['RS256'];
  const accepted = announced.filter((name) => algorithms.includes(name));
  return { ...portable(metadata), id_token_signing_alg_values_supported: accepted };
}

/** The library distinguishes absent members from undefined ones. */
function portable(metadata: ProviderMetadata): oauth.AuthorizationServer {
  return JSON.parse(JSON.stringify(metadata));
}

/** What a token says before it is verified; for its issuer, where that depends on the token. */
async function unverifiedClaims(response: Response): Promise<Readonly<Record<string, unknown>>> {
  const { id_token: token } = z.looseObject({ id_token: z.string() }).parse(await response.json());
  return decodeJwt(token);
}

/** How a client with a secret authenticates: HTTP Basic unless the provider takes it in the body alone (RFC 8414). */
export function authenticateBySecret(
  metadata: Pick<ProviderMetadata, 'token_endpoint_auth_methods_supported'>,
  secret: string | undefined,
): oauth.ClientAuth {
  if (secret === undefined) return oauth.None();
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return methods.includes('client_secret_basic')
    ? oauth.ClientSecretBasic(secret)
    : oauth.ClientSecretPost(secret);
}

/** The secret in the body of the request. */
export const authenticateInBody = (secret: string): oauth.ClientAuth => oauth.ClientSecretPost(secret);

/**
 * Whether a provider refuses the credentials of the client: `invalid_client` (RFC 6749, 5.2), or status 401 with any code, as
 * Keycloak answers. Undefined when the failure is no refusal of the provider.
 */
export function refusesClient(error: unknown): boolean | undefined {
  if (!(error instanceof oauth.ResponseBodyError)) return undefined;
  return error.error === 'invalid_client' || error.status === 401;
}

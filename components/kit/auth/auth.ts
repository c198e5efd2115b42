import type { App } from '#kit/http/http.ts';
import {
  type Authenticator,
  type AuthenticatorOptions,
  createAuthenticator as build,
  type CallerCheck,
} from './authenticator.ts';
import {
  remoteKeys as fetchedKeys,
  givenKeys as keysOf,
  type RemoteKeysOptions,
  type TokenKeys,
} from './keys.ts';
import { enforcePolicies } from './plugin.ts';
import {
  type RevocationView,
  type RevocationViewOptions,
  createRevocationView as viewOf,
} from './revocations.ts';
import { type ServiceTokensOptions, createServiceTokens as tokensOf } from './service-tokens.ts';
import { openTenantSession, type TenantSession, type TenantSessionOptions } from './tenant.ts';

export type { Authenticator, CallerCheck } from './authenticator.ts';
export type {
  Revocation,
  RevocationCursor,
  RevocationKind,
  RevocationPage,
  RevocationView,
} from './revocations.ts';
export type { ServiceTokensOptions } from './service-tokens.ts';
export type { TenantSession, TenantSessionOptions } from './tenant.ts';

/**
 * Verifies access tokens: ES256 only, `typ` at+jwt, issuer and audience of the installation, 30 s of skew, not revoked.
 * Verified tokens are cached by their text; expiry and revocation are judged at each call.
 *
 * Errors of authenticate: unauthenticated/UNAUTHORIZED, unavailable/REVOCATIONS_STALE,
 * unavailable/TOKEN_KEYS_UNAVAILABLE.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator & CallerCheck {
  return build(options);
}

/**
 * Keys of a local JWKS, of the tenant service itself or of a test. A new object returned by the function is a new key
 * set.
 */
export function givenKeys(jwks: () => unknown): TokenKeys {
  return keysOf(jwks);
}

/** Keys of a remote JWKS document, cached for 5 minutes, fetched for unknown key ids at most every 5 s. */
export function remoteKeys(options: RemoteKeysOptions): TokenKeys {
  return fetchedKeys(options);
}

/**
 * A copy of the revocations in force, updated at each wake signal and every 500 ms. Without a snapshot younger than 60
 * s it throws unavailable/REVOCATIONS_STALE: requests are answered 503 and the service is not ready.
 */
export function createRevocationView(options: RevocationViewOptions): RevocationView {
  return viewOf(options);
}

/**
 * Enforces `config.policy` of every route before its body is read and sets `request.caller`. `RequireOperator`, and
 * every route below `/api/internal` and `/api/{any}/internal` whatever its policy, also requires that the connection is
 * the token owner's own, by its certificate; the gateway's certificate is refused there with any token and with none.
 * 401 with `WWW-Authenticate: Bearer realm="platform"` (and `error="invalid_token"` when a token was sent), 403, 503
 * while revocations are stale. 403 `PROFILE_INCOMPLETE` or `PASSWORD_CHANGE_REQUIRED` for a restricted token on a route
 * that does not admit it. Other anonymous routes and unknown paths pass.
 */
export function authPlugin(app: App, authenticator: Authenticator): void {
  enforcePolicies(app, authenticator);
}

/**
 * This service's own tokens, minted over the tenant service's mTLS listener with the SVID and cached for 80 % of their
 * life.
 */
export function createServiceTokens(options: ServiceTokensOptions): () => Promise<string> {
  return tokensOf(options);
}

/**
 * What a component other than the tenant service needs to authenticate callers: keys over mutual TLS, revocations over
 * gRPC, the authenticator, its own tokens. Nothing is opened yet: call `revocations.start()` afterwards, and use
 * `revocations.assertFresh` as a readiness check.
 */
export function tenantSession(options: TenantSessionOptions): TenantSession {
  return openTenantSession(options);
}

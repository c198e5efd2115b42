import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { MintLog } from '../../audit/log/mint-log.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Origin } from '../../requests/origin.ts';
import { OAuthError } from '../../tokens/oauth/oauth.ts';
import { getParameter, grantScopes, type Parameters, parseClient } from '../../tokens/oauth/parameters.ts';
import type { TokenIssuer } from '../../tokens/sessions/issue.ts';
import type { PrincipalDirectory } from './directory.ts';
import { type Principal, secretMatches } from './principal.ts';

/** A request for a service token as a listener received it. */
export interface MintRequest {
  readonly parameters: Parameters;
  readonly authorization: string | undefined;
  /** On the mutual-TLS listener the SPIFFE id of the verified client certificate, undefined when it has none. */
  readonly certificate: { readonly spiffeId: string | undefined } | undefined;
  readonly origin: Origin;
}

export interface ServiceTokenAnswer {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  readonly expires_in: number;
  readonly scope: string;
}

export interface MintDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly installation: string;
  readonly principals: PrincipalDirectory;
  readonly issuer: TokenIssuer;
  readonly mintLog: MintLog;
  readonly sharedSecretsDisabled: boolean;
  /** @throws AppError rate_limited */
  readonly takeToken: (clientId: string) => void;
  readonly findCaller: (token: string) => Promise<Caller | undefined>;
}

/** client_credentials with a secret, or on the mutual-TLS listener with only a certificate. @throws OAuthError */
export async function mintServiceToken(deps: MintDeps, request: MintRequest): Promise<ServiceTokenAnswer> {
  const grantType = getParameter(request.parameters, 'grant_type');
  if (grantType !== 'client_credentials') {
    throw new OAuthError(400, 'unsupported_grant_type', 'this endpoint supports only client_credentials');
  }
  const { principal, credential } = await authenticateClient(deps, request);
  const scopes = grantScopes(request.parameters.get('scope'), principal.scopes);
  const token = deps.issuer.forService(principal, { scopes });
  deps.mintLog.count(principal.principalId, principal.clientId, credential);
  return present(token, scopes);
}

export function present(
  token: { readonly accessToken: string; readonly expiresIn: number },
  scopes: readonly string[],
): ServiceTokenAnswer {
  return {
    access_token: token.accessToken,
    token_type: 'Bearer',
    expires_in: token.expiresIn,
    scope: scopes.join(' '),
  };
}

interface AuthenticatedClient {
  readonly principal: Principal;
  readonly credential: 'certificate' | 'secret';
}

/** The conditions of specification document 1, section 5. A wrong secret is refused even with a valid certificate. */
export async function authenticateClient(deps: MintDeps, request: MintRequest): Promise<AuthenticatedClient> {
  const { clientId, secret } = parseClient(request.parameters, request.authorization);
  if (secret !== undefined) return bySecret(deps, clientId, secret);
  if (request.certificate === undefined) {
    throw new OAuthError(401, 'invalid_client', 'client_secret is required on this listener');
  }
  const { spiffeId } = request.certificate;
  if (spiffeId !== `spiffe://${deps.installation}/service/${clientId}`) {
    await reportMismatch(deps, { clientId, spiffeId, origin: request.origin });
    throw new OAuthError(401, 'invalid_client', 'the client certificate does not belong to client_id');
  }
  deps.takeToken(clientId);
  const principal = deps.principals.peek(clientId) ?? (await deps.principals.find(clientId));
  if (principal?.isActive !== true) throw new OAuthError(401, 'invalid_client', 'the client is not active');
  return { principal, credential: 'certificate' };
}

async function bySecret(deps: MintDeps, clientId: string, secret: string): Promise<AuthenticatedClient> {
  if (deps.sharedSecretsDisabled) {
    throw new OAuthError(400, 'invalid_client', 'shared secrets are disabled', {
      code: 'SHARED_SECRETS_DISABLED',
    });
  }
  // A separate limit, so that guessed secrets do not use up the mints of the legitimate client.
  deps.takeToken(`secret ${clientId}`);
  const principal = await deps.principals.find(clientId);
  if (!secretMatches(principal, secret) || principal?.isActive !== true) {
    throw new OAuthError(401, 'invalid_client', 'the client is unknown or its secret is wrong');
  }
  return { principal, credential: 'secret' };
}

interface Mismatch {
  readonly clientId: string;
  readonly spiffeId: string | undefined;
  readonly origin: Origin;
}

const maxReportedLength = 256;

async function reportMismatch(deps: MintDeps, mismatch: Mismatch): Promise<void> {
  const requested = mismatch.clientId.slice(0, maxReportedLength);
  const presented = mismatch.spiffeId ?? 'none';
  deps.log.warn({ presented, requested }, 'client certificate does not match client_id');
  await deps.db.transact((tx) =>
    appendAudit(tx, {
      organizationId: SYSTEM_ORGANIZATION_ID,
      occurredAtMs: deps.clock.nowMs(),
      type: 'PermissionDenied',
      origin: mismatch.origin,
      success: false,
      details: { action: 'token.mint', presented, requested },
    }),
  );
}

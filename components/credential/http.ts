import type { App } from '#kit/http/http.ts';
import { type AuthorizationRouteDeps, mountAuthorizationRoutes } from './issuer/authorization/routes.ts';
import { type IssuanceRouteDeps, mountIssuanceRoutes } from './issuer/issuance/routes.ts';
import { type MetadataRouteDeps, mountMetadataRoutes } from './issuer/metadata/routes.ts';
import { mountNonceRoutes, type NonceRouteDeps } from './issuer/nonces/routes.ts';
import { mountOfferRoutes, type OfferRouteDeps } from './issuer/offers/routes.ts';
import { mountTokenRoutes, type TokenRouteDeps } from './issuer/tokens/routes.ts';
import { mountStatusRoutes, type StatusRouteDeps } from './status/routes.ts';
import { mountPresentationRoutes, type PresentationRouteDeps } from './verifier/presentations/routes.ts';
import { mountRequestRoutes, type RequestRouteDeps } from './verifier/requests/routes.ts';

/** Dependencies of the route handlers; registering the routes uses none of them but the issuer's address. */
export type CredentialHttpDeps = MetadataRouteDeps &
  OfferRouteDeps &
  NonceRouteDeps &
  TokenRouteDeps &
  AuthorizationRouteDeps &
  IssuanceRouteDeps &
  StatusRouteDeps &
  RequestRouteDeps &
  PresentationRouteDeps;

export function mountRoutes(app: App, deps: CredentialHttpDeps): void {
  mountMetadataRoutes(app, deps);
  mountOfferRoutes(app, deps);
  mountTokenRoutes(app, deps);
  mountAuthorizationRoutes(app, deps);
  mountNonceRoutes(app, deps);
  mountIssuanceRoutes(app, deps);
  mountStatusRoutes(app, deps);
  mountRequestRoutes(app, deps);
  mountPresentationRoutes(app, deps);
}

import type { App } from '#kit/http/http.ts';
import { type IssuanceRouteDeps, mountIssuanceRoutes } from './issuance/routes.ts';
import { type MetadataRouteDeps, mountMetadataRoutes } from './metadata/routes.ts';
import { mountNonceRoutes, type NonceRouteDeps } from './nonces/routes.ts';
import { mountOfferRoutes, type OfferRouteDeps } from './offers/routes.ts';
import { mountStatusRoutes, type StatusRouteDeps } from './status/routes.ts';
import { mountTokenRoutes, type TokenRouteDeps } from './tokens/routes.ts';

/** Dependencies of the route handlers; registering the routes uses none of them but the issuer's address. */
export type CredentialHttpDeps = MetadataRouteDeps &
  OfferRouteDeps &
  NonceRouteDeps &
  TokenRouteDeps &
  IssuanceRouteDeps &
  StatusRouteDeps;

export function mountRoutes(app: App, deps: CredentialHttpDeps): void {
  mountMetadataRoutes(app, deps);
  mountOfferRoutes(app, deps);
  mountTokenRoutes(app, deps);
  mountNonceRoutes(app, deps);
  mountIssuanceRoutes(app, deps);
  mountStatusRoutes(app, deps);
}

import type { App } from '#kit/http/http.ts';
import { type HealthDeps, mountHealthRoutes } from './health/routes.ts';
import { mountOpenApiRoutes, type OpenApiDeps } from './openapi/routes.ts';

interface Deps extends HealthDeps, OpenApiDeps {}

/** The pages that the gateway serves itself; everything else is forwarded. */
export function mountRoutes(app: App, deps: Deps): void {
  mountHealthRoutes(app, deps);
  mountOpenApiRoutes(app, deps);
}

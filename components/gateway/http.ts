import type { App } from '#kit/http/http.ts';
import { type HealthDeps, mountHealthRoutes } from './health/routes.ts';
import { mountOpenApiRoutes, type OpenApiDeps } from './openapi/routes.ts';

export interface Deps extends HealthDeps, OpenApiDeps {}

/** The pages that the gateway answers itself; everything else it forwards. */
export function mountRoutes(app: App, deps: Deps): void {
  mountHealthRoutes(app, deps);
  mountOpenApiRoutes(app, deps);
}

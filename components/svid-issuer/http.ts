import type { App } from '#kit/http/http.ts';
import { mountSvidRoutes, type SvidRouteDeps } from './svids/routes.ts';

export function mountRoutes(app: App, deps: SvidRouteDeps): void {
  mountSvidRoutes(app, deps);
}

import type { App } from '#kit/http/http.ts';
import { type GreetingDeps, mountGreetingRoutes } from './greetings/routes.ts';

export type HelloHttpDeps = GreetingDeps;

export function mountRoutes(app: App, deps: HelloHttpDeps): void {
  mountGreetingRoutes(app, deps);
}

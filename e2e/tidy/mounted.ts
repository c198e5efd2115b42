import type { FastifySchema } from 'fastify';
import { type App, createHttpServer } from '#kit/http/http.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { exists } from './repository.ts';
import type { Component } from './routes/table.ts';

/** A route as a component registers it. */
export interface MountedRoute {
  readonly component: Component;
  readonly method: string;
  /** With `:name` for parameters. */
  readonly path: string;
  readonly policy: string;
  readonly schema: FastifySchema | undefined;
}

type Mount = (app: App, deps: object) => void;

/**
 * Mounts the routes of a component on an application that only records them. Every `mount...Routes` of its `http.ts`
 * counts, because some components have several listeners. Returns nothing for a component without `http.ts`.
 */
export async function mountedRoutes(component: Component): Promise<MountedRoute[]> {
  const mounts = await loadMounts(component);
  const recorded: MountedRoute[] = [];
  for (const mount of mounts) {
    const app = createHttpServer({ runtime: testRuntime(component), title: component });
    app.addHook('onRoute', (route) => {
      for (const method of [route.method].flat()) {
        const policy = route.config?.policy ?? 'none';
        const { url: path, schema } = route;
        if (method !== 'HEAD') recorded.push({ component, method, path, policy, schema });
      }
    });
    mount(app, {});
    await app.ready();
    await app.close();
  }
  return recorded;
}

/** One application per `mount...Routes` of a component, with its routes and no services behind them. */
export async function openMountedApps(component: Component): Promise<App[]> {
  const mounts = await loadMounts(component);
  const apps = mounts.map((mount) => {
    const app = createHttpServer({ runtime: testRuntime(component), title: component });
    mount(app, {});
    return app;
  });
  await Promise.all(apps.map((app) => app.ready()));
  return apps;
}

async function loadMounts(component: Component): Promise<Mount[]> {
  if (!exists(`components/${component}/http.ts`)) return [];
  const loaded: Record<string, unknown> = await import(`../../components/${component}/http.ts`);
  return Object.entries(loaded)
    .filter(([name, value]) => /^mount\w*Routes$/.test(name) && typeof value === 'function')
    .map(([, value]) => value as Mount);
}

/** A path without the names of its parameters: equal for all spellings of one route. */
export function shape(path: string): string {
  return path.replaceAll(/\{[^}]*\}|:[A-Za-z0-9_]+(?:\([^)]*\))?/g, '{}');
}

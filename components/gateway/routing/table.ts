import type { RouteRule as ServiceRoute } from '#core/identity/service-routes.ts';
import type { Service } from '#core/identity/services.ts';

/** One line of the routing table: a path and the name of its service; `gateway` is this process. */
export interface RouteRule extends ServiceRoute {
  readonly service: string;
}

const own: readonly RouteRule[] = [
  { path: '/health', service: 'gateway' },
  { path: '/api/health', service: 'gateway' },
  { path: '/openapi.json', service: 'gateway', rewrite: '/openapi/all.json' },
  { path: '/openapi/{document}', service: 'gateway' },
  { path: '/docs/**', service: 'gateway' },
];

/** Every public path of the installation, first match wins. Other paths answer 404. */
export function routingTableOf(services: readonly Service[]): readonly RouteRule[] {
  return [
    ...own,
    ...services.flatMap(({ name, routes }) => routes.map((route) => ({ ...route, service: name }))),
  ];
}

/**
 * Paths that never leave the private network, checked before any route (specification document 1, section 1). `*` is
 * one segment; a pattern covers the path itself and everything below it.
 */
export const deniedPaths: readonly string[] = [
  '/api/internal',
  '/api/*/internal',
  '/api/v1/wallets/*/persona',
  '/metrics',
  '/readyz',
];

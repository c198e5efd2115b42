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

/** Name of the server of pages in the routing table; it is no service. */
export const PAGES = 'pages';

/** Paths of pages; others below `/auth` belong to the sign-in by providers. */
const pages: readonly RouteRule[] = [
  '/auth/login/**',
  '/auth/verify-email/**',
  '/auth/reset-password/**',
  '/auth/files/**',
  '/app/**',
  '/wallet/**',
].map((path) => ({ path, service: PAGES }));

/**
 * Every public path of the installation, first match wins. Other paths answer 404.
 *
 * @param hasPageServer another server has the pages
 */
export function routingTableOf(services: readonly Service[], hasPageServer = false): readonly RouteRule[] {
  return [
    ...own,
    ...(hasPageServer ? pages : []),
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

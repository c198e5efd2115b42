/** The processes that answer for the gateway's public paths; `gateway` is this process itself. */
export const services = [
  'tenant',
  'wallet',
  'register',
  'validator',
  'peer',
  'blueprint',
  'credential',
  'tool-server',
] as const;

export type ServiceName = (typeof services)[number];

/**
 * One line of the routing table. Segments of `path`: a literal, `{name}` (one segment), `{name:hex32}` (a register id),
 * `**` at the end (this path and everything below it). `rewrite` replaces the path. `webSocket` allows an upgrade: only for a
 * service that answers handshakes itself, and none does yet.
 */
export interface RouteRule {
  readonly path: string;
  readonly service: ServiceName | 'gateway';
  readonly webSocket?: true;
  readonly rewrite?: string;
}

const own: readonly RouteRule[] = [
  { path: '/health', service: 'gateway' },
  { path: '/api/health', service: 'gateway' },
  { path: '/openapi.json', service: 'gateway', rewrite: '/openapi/all.json' },
  { path: '/openapi/{document}', service: 'gateway' },
  { path: '/docs/**', service: 'gateway' },
];

/** Peer paths come before the register service's: both live under /api/registers (L-22). */
const peer: readonly RouteRule[] = [
  { path: '/api/registers/available', service: 'peer' },
  { path: '/api/registers/subscriptions', service: 'peer' },
  { path: '/api/registers/cache', service: 'peer' },
  { path: '/api/registers/bulk-advertise', service: 'peer' },
  { path: '/api/registers/{registerId:hex32}/advertise', service: 'peer' },
  { path: '/api/registers/{registerId:hex32}/subscribe', service: 'peer' },
  { path: '/api/registers/{registerId:hex32}/cache', service: 'peer' },
  { path: '/api/peers/**', service: 'peer' },
  { path: '/peer/health', service: 'peer', rewrite: '/api/health' },
];

const register: readonly RouteRule[] = [
  { path: '/api/registers/**', service: 'register' },
  { path: '/api/query/**', service: 'register' },
  { path: '/api/system-register/**', service: 'register' },
  { path: '/api/admin/registers/**', service: 'register' },
  { path: '/api/validators/**', service: 'register' },
  { path: '/odata/**', service: 'register' },
  { path: '/health/sync', service: 'register' },
  { path: '/hubs/register/**', service: 'register' },
];

const validator: readonly RouteRule[] = [
  { path: '/api/v1/transactions/**', service: 'validator' },
  { path: '/api/validation/**', service: 'validator' },
  { path: '/api/admin/validation/**', service: 'validator' },
  { path: '/api/admin/validators/**', service: 'validator' },
  { path: '/api/admin/config', service: 'validator' },
  { path: '/api/metrics/**', service: 'validator' },
];

const tenant: readonly RouteRule[] = [
  { path: '/api/service-auth/**', service: 'tenant' },
  { path: '/api/organizations/**', service: 'tenant' },
  { path: '/api/platform/**', service: 'tenant' },
  { path: '/api/auth/**', service: 'tenant' },
  { path: '/api/totp/**', service: 'tenant' },
  { path: '/api/passkey/**', service: 'tenant' },
  { path: '/api/invitations/**', service: 'tenant' },
  { path: '/api/service-principals/**', service: 'tenant' },
  { path: '/api/address-lookup/**', service: 'tenant' },
  { path: '/api/me/**', service: 'tenant' },
  { path: '/api/v1/me/**', service: 'tenant' },
  { path: '/api/v1/trust/**', service: 'tenant' },
  { path: '/me/persona', service: 'tenant' },
  { path: '/auth/social/callback', service: 'tenant' },
  { path: '/.well-known/jwks.json', service: 'tenant' },
  { path: '/.well-known/oauth-authorization-server/api/service-auth', service: 'tenant' },
  { path: '/hubs/tenant/**', service: 'tenant' },
];

const wallet: readonly RouteRule[] = [
  { path: '/api/wallets/**', service: 'wallet' },
  { path: '/api/v1/wallets/**', service: 'wallet' },
  { path: '/api/v1/wallet/**', service: 'wallet' },
  { path: '/api/v1/ethereum/**', service: 'wallet' },
  { path: '/hubs/wallet/**', service: 'wallet' },
];

const blueprint: readonly RouteRule[] = [
  { path: '/api/actions/**', service: 'blueprint' },
  { path: '/api/blueprints/**', service: 'blueprint' },
  { path: '/api/execution/**', service: 'blueprint' },
  { path: '/api/files/**', service: 'blueprint' },
  { path: '/api/file-chunks', service: 'blueprint' },
  { path: '/api/instances/**', service: 'blueprint' },
  { path: '/api/operations/**', service: 'blueprint' },
  { path: '/api/workflows/**', service: 'blueprint' },
  { path: '/hubs/blueprint/**', service: 'blueprint' },
  { path: '/hubs/chat/**', service: 'blueprint' },
];

const credential: readonly RouteRule[] = [
  { path: '/.well-known/openid-credential-issuer', service: 'credential' },
  { path: '/.well-known/oauth-authorization-server', service: 'credential' },
  { path: '/token', service: 'credential' },
  { path: '/nonce', service: 'credential' },
  { path: '/credential', service: 'credential' },
  { path: '/api/v1/offers/**', service: 'credential' },
  { path: '/api/v1/verifier/**', service: 'credential' },
];

const toolServer: readonly RouteRule[] = [{ path: '/mcp/**', service: 'tool-server' }];

/** Every public path of the installation, first match wins. What is not here answers 404. */
export const routingTable: readonly RouteRule[] = [
  ...own,
  ...peer,
  ...register,
  ...validator,
  ...tenant,
  ...wallet,
  ...blueprint,
  ...credential,
  ...toolServer,
];

/**
 * Paths that never leave the private network, judged before any route (specification 1, section 1; notes/identity.md
 * 4.17). `*` is one segment; a pattern covers the path itself and everything below it.
 */
export const deniedPaths: readonly string[] = [
  '/api/internal',
  '/api/*/internal',
  '/api/v1/wallets/*/persona',
  '/metrics',
  '/readyz',
];

/**
 * One public path of a service. Segments of `path`: a literal, `{name}` (one segment), `{name:hex32}` (a register id),
 * `**` at the end (this path and everything below it). `rewrite` replaces the path. `hub` is the path of a real-time
 * hub: WebSockets, event streams, held polls, and the access token in the query. `bodyLimitBytes` is the largest request
 * body, where it is not the 10 MiB of all others.
 */
export interface RouteRule {
  readonly path: string;
  readonly hub?: true;
  readonly rewrite?: string;
  readonly bodyLimitBytes?: number;
}

/**
 * The public paths of each service (specification document 1, section 1). Paths of the peer service lie below those of
 * the register service, so this list names the peer service first: the first match wins.
 */
export const ROUTES = {
  tenant: [
    { path: '/api/service-auth/**' },
    { path: '/api/organizations/**' },
    { path: '/api/platform/**' },
    { path: '/api/auth/**' },
    { path: '/api/totp/**' },
    { path: '/api/passkey/**' },
    { path: '/api/invitations/**' },
    { path: '/api/service-principals/**' },
    { path: '/api/address-lookup/**' },
    { path: '/api/me/**' },
    { path: '/api/v1/me/**' },
    // A trust list of 10 MiB arrives in a form.
    { path: '/api/v1/trust/trustlists', bodyLimitBytes: 11 * 1024 * 1024 },
    { path: '/api/v1/trust/**' },
    { path: '/me/persona' },
    { path: '/auth/**' },
    { path: '/app/**' },
    { path: '/wallet/**' },
    { path: '/.well-known/jwks.json' },
    { path: '/.well-known/oauth-authorization-server/api/service-auth' },
    { path: '/hubs/tenant/**', hub: true },
  ],
  wallet: [
    { path: '/api/wallets/**' },
    { path: '/api/v1/wallets/**' },
    { path: '/api/v1/wallet/**' },
    { path: '/api/v1/ethereum/**' },
    { path: '/hubs/wallet/**', hub: true },
  ],
  peer: [
    { path: '/api/registers/available' },
    { path: '/api/registers/subscriptions' },
    { path: '/api/registers/cache' },
    { path: '/api/registers/bulk-advertise' },
    { path: '/api/registers/{registerId:hex32}/advertise' },
    { path: '/api/registers/{registerId:hex32}/subscribe' },
    { path: '/api/registers/{registerId:hex32}/cache' },
    { path: '/api/peers/**' },
    { path: '/peer/health', rewrite: '/api/health' },
  ],
  register: [
    { path: '/api/registers/**' },
    { path: '/api/query/**' },
    { path: '/api/system-register/**' },
    { path: '/api/admin/registers/**' },
    { path: '/api/validators/**' },
    { path: '/odata/**' },
    { path: '/health/sync' },
    { path: '/hubs/register/**', hub: true },
  ],
  validator: [
    { path: '/api/v1/transactions/**' },
    { path: '/api/validation/**' },
    { path: '/api/admin/validation/**' },
    { path: '/api/admin/validators/**' },
    { path: '/api/admin/config' },
    { path: '/api/metrics/**' },
  ],
  blueprint: [
    { path: '/api/actions/**' },
    { path: '/api/blueprints/**' },
    { path: '/api/execution/**' },
    { path: '/api/files/**' },
    { path: '/api/file-chunks' },
    { path: '/api/instances/**' },
    { path: '/api/operations/**' },
    { path: '/api/workflows/**' },
    { path: '/api/admin/workflows/**' },
    { path: '/hubs/blueprint/**', hub: true },
    { path: '/hubs/chat/**', hub: true },
  ],
  credential: [
    { path: '/.well-known/openid-credential-issuer/**' },
    { path: '/.well-known/oauth-authorization-server/**' },
    { path: '/token' },
    { path: '/par' },
    { path: '/authorize' },
    { path: '/nonce' },
    { path: '/credential' },
    { path: '/api/v1/offers/**' },
    { path: '/api/v1/verifier/**' },
    { path: '/api/v1/credentials/**' },
  ],
  'tool-server': [{ path: '/mcp/**' }],
} as const satisfies Record<string, readonly RouteRule[]>;

import { routes, type SpecifiedRoute } from './table.ts';

/** Routes of specification document 2, section 4, in its order. */
export const document2: readonly SpecifiedRoute[] = [
  // Register service
  ...routes('register', 'served', [
    'POST /api/registers/initiate CanManageRegisters',
    'POST /api/registers/finalize RequireAuthenticated',
    'GET /api/registers RequireAuthenticated',
    'GET /api/registers/{id} RequireAuthenticated',
    'GET /api/registers/stats/count RequireAuthenticated',
    'POST /api/registers/{id}/transactions RequireAuthenticated',
    'GET /api/registers/{id}/transactions/{txId} RequireAuthenticated',
    'GET /api/registers/{id}/transactions RequireAuthenticated',
    'POST /api/registers/{id}/dockets/seal RequireAuthenticated',
    'GET /api/registers/{registerId}/dockets RequireAuthenticated',
    'GET /api/registers/{registerId}/dockets/{docketId} RequireAuthenticated',
    'GET /api/registers/{registerId}/dockets/{docketId}/transactions RequireAuthenticated',
    'POST /api/registers/{registerId}/dockets CanWriteDockets',
    'PUT /api/registers/{id} RequireAuthenticated',
    'DELETE /api/registers/{id} RequireAuthenticated',
    'POST /api/registers/{registerId}/disable-dev-mode CanManageRegisters',
  ]),
  ...routes('register', 'served', [
    'GET /api/registers/{registerId}/transactions/graph RequireAuthenticated',
    'POST /api/registers/{registerId}/participants/resolve-public-keys RequireAuthenticated',
  ]),
  ...routes('register', 'served', ['POST /api/registers/{registerId}/blueprints/publish RequireService']),
  // Query routes and OData
  ...routes('register', 'served', [
    'GET /api/query/wallets/{address}/transactions RequireAuthenticated',
    'GET /api/query/senders/{address}/transactions RequireAuthenticated',
    'GET /api/query/blueprints/{blueprintId}/transactions RequireAuthenticated',
    'GET /api/query/stats RequireAuthenticated',
    'GET /odata/Registers RequireAuthenticated',
    'GET /odata/Transactions RequireAuthenticated',
    'GET /odata/Dockets RequireAuthenticated',
  ]),
  // Register policy and validators
  ...routes('register', 'served', [
    'GET /api/registers/{registerId}/policy RequireAuthenticated',
    'POST /api/registers/{registerId}/policy/update CanManageRegisters',
    'GET /api/registers/{registerId}/policy/history RequireAuthenticated',
    'GET /api/registers/{registerId}/validators/approved RequireAuthenticated',
    'GET /api/registers/{registerId}/validators/operational RequireAuthenticated',
  ]),
  // System register
  ...routes('register', 'served', [
    'GET /api/system-register RequireAuthenticated',
    'GET /api/system-register/blueprints RequireAuthenticated',
    'GET /api/system-register/blueprints/{blueprintId} RequireAuthenticated',
    'GET /api/system-register/blueprints/{blueprintId}/versions/{version} RequireAuthenticated',
    'GET /api/system-register/blueprints/{blueprintId}/versions RequireAuthenticated',
    'POST /api/system-register/blueprints/{blueprintId}/classify-change RequireAuthenticated',
  ]),
  // Recovery status
  ...routes('register', 'served', ['GET /health/sync Anonymous']),
  // Validator service
  ...routes('validator', 'served', [
    'POST /api/v1/transactions/validate RequireAuthenticated',
    'POST /api/admin/validation/start/{registerId} RequireSystemAdmin',
    'POST /api/admin/validation/stop/{registerId} RequireSystemAdmin',
    'POST /api/admin/validation/pause/{registerId} RequireSystemAdmin',
    'POST /api/admin/validation/resume/{registerId} RequireSystemAdmin',
    'GET /api/admin/validation/status RequireSystemAdmin',
    'GET /api/metrics/consensus RequireAuthenticated',
    'POST /api/validation/dockets/build RequireAuthenticated',
    'POST /api/validation/dockets/validate RequireAuthenticated',
    'POST /api/validation/transactions/add RequireAuthenticated',
    'GET /api/validation/transactions/{registerId} RequireAuthenticated',
    // The specification's table gives this group without authentication.
    'PUT /api/admin/config RequireSystemAdmin',
    'GET /api/metrics/dockets RequireAuthenticated',
    'GET /api/metrics/transactions RequireAuthenticated',
    'GET /api/metrics/mempool RequireAuthenticated',
    'GET /health Anonymous',
    'GET /alive Anonymous',
  ]),
  // Peer service
  ...routes('peer', 'pending', [
    'GET /api/peers RequireAuthenticated',
    'GET /api/peers/{peerId} RequireAuthenticated',
    'GET /api/peers/stats RequireAuthenticated',
    'GET /api/peers/health RequireAuthenticated',
    'GET /api/peers/quality RequireAuthenticated',
    'GET /api/peers/connected Anonymous',
    'POST /api/peers/{peerId}/ban CanManagePeers',
    'DELETE /api/peers/{peerId}/ban CanManagePeers',
    'POST /api/peers/{peerId}/reset CanManagePeers',
    'GET /api/registers/available RequireAuthenticated',
    'GET /api/registers/subscriptions RequireAuthenticated',
    'GET /api/registers/cache RequireAuthenticated',
    'POST /api/registers/{registerId}/advertise RequireAuthenticated',
    'POST /api/registers/bulk-advertise RequireAuthenticated',
    'POST /api/registers/{registerId}/subscribe RequireService',
    'DELETE /api/registers/{registerId}/subscribe RequireService',
    'DELETE /api/registers/{registerId}/cache RequireAuthenticated',
    'GET / Anonymous',
    'GET /api/health Anonymous',
    'POST /api/internal/peer/distribute/{registerId} CanWriteDockets',
  ]),
];

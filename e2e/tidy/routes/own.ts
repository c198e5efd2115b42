import { routes, type SpecifiedRoute } from './table.ts';

/** Routes that no document names: what the notes and decisions add to a first running system. */
export const ownRoutes: readonly SpecifiedRoute[] = [
  // notes/identity.md 4.17
  ...routes('gateway', 'served', [
    'GET /health Anonymous',
    'GET /api/health Anonymous',
    'GET /openapi/{document} Anonymous',
  ]),
  // notes/identity.md section 10, decision D37
  ...routes('tenant', 'served', [
    'GET /.well-known/jwks.json Anonymous',
    'GET /.well-known/oauth-authorization-server/api/service-auth Anonymous',
    'POST /api/organizations/{organizationId}/users/{userId}/unlock RequireAdministrator',
  ]),
  // Wallets: what issue 3 adds, under both bases that document 3 uses
  ...routes('wallet', 'served', [
    'GET /api/wallets RequireAuthenticated',
    'GET /api/wallets/{id} RequireAuthenticated',
    'POST /api/wallets/recover RequireAuthenticated',
    'POST /api/wallets/verify RequireAuthenticated',
    'POST /api/wallets/{id}/access RequireAuthenticated',
    'GET /api/wallets/{id}/access RequireAuthenticated',
    'DELETE /api/wallets/{id}/access/{subject} RequireAuthenticated',
    'GET /api/wallets/{id}/access/{subject}/check RequireAuthenticated',
    'POST /api/v1/wallets RequireAuthenticated',
    'GET /api/v1/wallets RequireAuthenticated',
    'GET /api/v1/wallets/{id} RequireAuthenticated',
    'POST /api/v1/wallets/recover RequireAuthenticated',
    'POST /api/v1/wallets/verify RequireAuthenticated',
    'POST /api/v1/wallets/{id}/sign RequireAuthenticated',
    'POST /api/v1/wallets/{id}/encrypt RequireAuthenticated',
    'POST /api/v1/wallets/{id}/decrypt RequireAuthenticated',
    'GET /api/v1/wallets/{id}/access RequireAuthenticated',
    'DELETE /api/v1/wallets/{id}/access/{subject} RequireAuthenticated',
    'GET /api/v1/wallets/{id}/access/{subject}/check RequireAuthenticated',
  ]),
  // Governance: notes/ledger.md L-87 and L-106
  ...routes('register', 'served', [
    'GET /api/registers/{registerId}/governance/roster RequireAuthenticated',
    'GET /api/registers/{registerId}/governance/history RequireAuthenticated',
    'GET /api/registers/{registerId}/governance/proposals RequireAuthenticated',
    'GET /api/registers/{registerId}/governance/proposals/{proposalId} RequireAuthenticated',
    'POST /api/registers/{registerId}/governance/propose RequireAuthenticated',
    'POST /api/registers/{registerId}/governance/proposals/{proposalId}/approvals RequireAuthenticated',
    'POST /api/registers/{registerId}/governance/proposals/{proposalId}/enact RequireAuthenticated',
    'GET /api/registers/{registerId}/crypto-policy RequireAuthenticated',
    'GET /api/registers/{registerId}/crypto-policy/history RequireAuthenticated',
    'POST /api/registers/{registerId}/governance/crypto-policy CanManageRegisters',
  ]),
  // Validators of a register: notes/ledger.md L-109, services too where they manage registers; L-14
  ...routes('register', 'served', [
    'GET /api/validators/{registerId} RequireAuthenticated',
    'GET /api/validators/{registerId}/count RequireAuthenticated',
    'GET /api/validators/{registerId}/pending RequireAuthenticated',
    'GET /api/validators/{registerId}/{validatorId} RequireAuthenticated',
    'POST /api/validators/register RequireAuthenticated',
    'POST /api/validators/{registerId}/refresh RequireAuthenticated',
    'POST /api/validators/{registerId}/{validatorId}/approve RequireAuthenticated',
    'POST /api/validators/{registerId}/{validatorId}/reject RequireAuthenticated',
    'POST /api/validators/{registerId}/{validatorId}/suspend RequireAuthenticated',
    'GET /api/admin/registers/{registerId}/conflicts RequireSystemAdmin',
    'POST /api/admin/registers/{registerId}/resume-halted RequireSystemAdmin',
  ]),
  // Proofs: notes/ledger.md chapter 5, decisions D25 and D40
  ...routes('register', 'served', [
    'GET /api/registers/{registerId}/transactions/{txId}/record RequireAuthenticated',
    'GET /api/registers/{registerId}/transactions/{txId}/inclusion-proof RequireAuthenticated',
    'GET /api/registers/{registerId}/transactions/{txId}/receipt RequireAuthenticated',
    'GET /api/registers/{registerId}/checkpoint RequireAuthenticated',
    'GET /api/registers/{registerId}/checkpoint/key RequireAuthenticated',
    'GET /api/registers/{registerId}/checkpoint/cosigners RequireAuthenticated',
    'GET /api/registers/{registerId}/proofs/consistency RequireAuthenticated',
    'POST /api/registers/{registerId}/inclusion-proofs/verify Anonymous',
  ]),
];

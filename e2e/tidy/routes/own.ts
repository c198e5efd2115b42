import { routes, type SpecifiedRoute } from './table.ts';

/** Routes that no specification document names. */
export const ownRoutes: readonly SpecifiedRoute[] = [
  // Health and description of the installation
  ...routes('gateway', 'served', [
    'GET /health Anonymous',
    'GET /api/health Anonymous',
    'GET /openapi/{document} Anonymous',
  ]),
  // SVIDs for ServiceAccount tokens
  ...routes('svid-issuer', 'served', ['POST /svid Anonymous']),
  // Token server metadata, sessions and settings
  ...routes('tenant', 'served', [
    'GET /.well-known/jwks.json Anonymous',
    'GET /.well-known/oauth-authorization-server/api/service-auth Anonymous',
    'POST /api/organizations/{organizationId}/users/{userId}/unlock RequireAdministrator',
    'GET /api/organizations/{organizationId}/users/{userId} RequireAuthenticated',
    'POST /api/organizations/{organizationId}/users/{userId}/suspend RequireAdministrator',
    'POST /api/organizations/{organizationId}/users/{userId}/reactivate RequireAdministrator',
    'PUT /api/organizations/{organizationId}/users/{userId}/role RequireAdministrator',
    'DELETE /api/organizations/{organizationId}/users/{userId} RequireAdministrator',
    'PUT /api/platform/settings/max-orgs RequireSystemAdmin',
  ]),
  // Organisations of custom resources, for the operator alone
  ...routes('tenant', 'served', [
    'POST /api/internal/organizations RequireOperator',
    'GET /api/internal/organizations/{organizationId} RequireOperator',
    'GET /api/internal/organizations/by-uid/{resourceUid} RequireOperator',
    'PUT /api/internal/organizations/by-uid/{resourceUid}/status RequireOperator',
    'DELETE /api/internal/organizations/by-uid/{resourceUid} RequireOperator',
  ]),
  // Drafts of workflows
  ...routes('blueprint', 'served', [
    'GET /api/instances RequireAuthenticated',
    'GET /api/instances/{instanceId}/diagram RequireAuthenticated',
    'GET /api/instances/{instanceId}/next-actions RequireAuthenticated',
    'POST /api/instances/{instanceId}/cancel RequireAuthenticated',
    'GET /api/blueprints CanManageBlueprints',
    'POST /api/blueprints CanManageBlueprints',
    'GET /api/blueprints/{id} CanManageBlueprints',
    'PUT /api/blueprints/{id} CanManageBlueprints',
    'DELETE /api/blueprints/{id} CanManageBlueprints',
    'POST /api/blueprints/{id}/validate CanManageBlueprints',
    'GET /api/blueprints/{id}/diagram CanManageBlueprints',
    'GET /api/blueprints/{id}/versions/{ordinal} RequireAuthenticated',
    'GET /api/blueprints/{id}/definitions/{publicationTxId} RequireAuthenticated',
  ]),
  // Wallets, under both bases that document 3 uses
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
    'PATCH /api/wallets/{id} RequireAuthenticated',
    'DELETE /api/wallets/{id} RequireAuthenticated',
    'GET /api/wallets/org/{orgId}/keys RequireAdministrator',
    'PATCH /api/v1/wallets/{id} RequireAuthenticated',
    'DELETE /api/v1/wallets/{id} RequireAuthenticated',
    'POST /api/v1/wallets/org/{orgId}/master-key RequireAdministrator',
    'POST /api/v1/wallets/org/{orgId}/derive-key RequireAdministrator',
    'GET /api/v1/wallets/org/{orgId}/keys RequireAdministrator',
    'POST /api/v1/wallets/org/{orgId}/keys/{derivedKeyId}/rotate RequireAdministrator',
    'DELETE /api/v1/wallets/org/{orgId}/keys/{derivedKeyId} RequireAdministrator',
    'GET /api/v1/wallets/{id}/access RequireAuthenticated',
    'DELETE /api/v1/wallets/{id}/access/{subject} RequireAuthenticated',
    'GET /api/v1/wallets/{id}/access/{subject}/check RequireAuthenticated',
  ]),
  // The operator's wallet
  ...routes('wallet', 'served', [
    'PUT /api/internal/service-wallets/{name} RequireOperator',
    'DELETE /api/internal/validator-keys/{validatorId} RequireOperator',
  ]),
  // Governance
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
  // Validators of a register; also for services that manage registers
  ...routes('register', 'served', [
    'GET /api/validators/{registerId} RequireAuthenticated',
    'GET /api/validators/{registerId}/count RequireAuthenticated',
    'GET /api/validators/{registerId}/pending RequireAuthenticated',
    'GET /api/validators/{registerId}/{validatorId} RequireAuthenticated',
    'POST /api/validators/register RequireAuthenticated',
    'POST /api/validators/{registerId}/refresh RequireAuthenticated',
    'POST /api/validators/{registerId}/{validatorId}/approve RequireAuthenticated',
    'POST /api/validators/{registerId}/{validatorId}/reject RequireAuthenticated',
    'POST /api/validators/{registerId}/{validatorId}/rotate-key RequireAuthenticated',
    'POST /api/validators/{registerId}/{validatorId}/suspend RequireAuthenticated',
    'GET /api/admin/registers/{registerId}/conflicts RequireSystemAdmin',
    'POST /api/admin/registers/{registerId}/resume-halted RequireSystemAdmin',
    'GET /api/admin/registers/{registerId}/projection RequireSystemAdmin',
    'POST /api/admin/registers/{registerId}/projection/rebuild RequireSystemAdmin',
  ]),
  // The rows of workflow instances
  ...routes('blueprint', 'served', [
    'GET /api/admin/workflows/{registerId}/projection RequireSystemAdmin',
    'POST /api/admin/workflows/{registerId}/projection/rebuild RequireSystemAdmin',
  ]),
  // The packed path of submissions
  ...routes('validator', 'served', ['POST /api/v1/transactions/batch RequireAuthenticated']),
  // Evidence of two signed messages
  ...routes('validator', 'served', ['GET /api/admin/validators/{registerId}/evidence RequireSystemAdmin']),
  // The operator's requests to one validator
  ...routes('validator', 'served', [
    'GET /api/internal/consensus RequireOperator',
    'POST /api/internal/drain RequireOperator',
    'POST /api/internal/undrain RequireOperator',
    'POST /api/internal/validation/{registerId} RequireOperator',
  ]),
  // Registers of custom resources; the last one is for people
  ...routes('register', 'served', [
    'GET /api/internal/organizations/{organizationId}/registers/count RequireOperator',
    'POST /api/internal/registers RequireOperator',
    'PUT /api/internal/registers/{uid} RequireOperator',
    'PUT /api/internal/sandboxes/{organizationId} RequireBlueprintService',
    'GET /api/internal/registers/{key} RequireOperator',
    'DELETE /api/internal/registers/{key} RequireOperator',
    'POST /api/internal/registers/{key}/changes RequireOperator',
    'PUT /api/internal/registers/{key}/validation RequireOperator',
    'POST /api/registers/{registerId}/attestations RequireAuthenticated',
  ]),
  // OData
  ...routes('register', 'served', [
    'GET /odata RequireAuthenticated',
    'GET /odata/ RequireAuthenticated',
    'GET /odata/$metadata RequireAuthenticated',
    'GET /odata/{resource} RequireAuthenticated',
    'GET /odata/Registers/$count RequireAuthenticated',
    'GET /odata/Transactions/$count RequireAuthenticated',
    'GET /odata/Dockets/$count RequireAuthenticated',
    'POST /odata/$batch RequireAuthenticated',
  ]),
  // Hubs: negotiation, records of event streams and polls, and their end
  ...routes('blueprint', 'served', [
    'POST /hubs/blueprint/negotiate RequirePlatformUser',
    'POST /hubs/blueprint RequirePlatformUser',
    'DELETE /hubs/blueprint RequirePlatformUser',
    'POST /hubs/chat/negotiate RequirePlatformUser',
    'POST /hubs/chat RequirePlatformUser',
    'DELETE /hubs/chat RequirePlatformUser',
  ]),
  ...routes('register', 'served', [
    'POST /hubs/register/negotiate RequirePlatformUser',
    'POST /hubs/register RequirePlatformUser',
    'DELETE /hubs/register RequirePlatformUser',
  ]),
  ...routes('tenant', 'served', [
    'POST /hubs/tenant/negotiate RequirePlatformUser',
    'POST /hubs/tenant RequirePlatformUser',
    'DELETE /hubs/tenant RequirePlatformUser',
  ]),
  ...routes('wallet', 'served', [
    'POST /hubs/wallet/negotiate RequirePlatformUser',
    'POST /hubs/wallet RequirePlatformUser',
    'DELETE /hubs/wallet RequirePlatformUser',
  ]),
  // Proofs
  ...routes('register', 'served', [
    'GET /api/registers/{registerId}/transactions/{txId}/record RequireAuthenticated',
    'GET /api/registers/{registerId}/transactions/{txId}/inclusion-proof RequireAuthenticated',
    'GET /api/registers/{registerId}/transactions/{txId}/receipt RequireAuthenticated',
    'GET /api/registers/{registerId}/checkpoint RequireAuthenticated',
    'GET /api/registers/{registerId}/checkpoint/key RequireAuthenticated',
    'GET /api/registers/{registerId}/checkpoint/cosigners RequireAuthenticated',
    'GET /api/registers/{registerId}/proofs/consistency RequireAuthenticated',
    'GET /api/registers/{registerId}/export RequireAuthenticated',
    'POST /api/registers/{registerId}/inclusion-proofs/verify Anonymous',
  ]),
];

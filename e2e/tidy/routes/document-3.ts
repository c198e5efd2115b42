import { routes, type SpecifiedRoute } from './table.ts';

/** Routes of specification document 3, sections 4 and 6, in their order. */
export const document3: readonly SpecifiedRoute[] = [
  // Action workflow
  ...routes('blueprint', 'served', [
    'GET /api/files/{wallet}/{register}/{tx}/{fileId} RequireAuthenticated',
    'POST /api/file-chunks RequireAuthenticated',
    'GET /api/actions/{walletAddress}/{registerAddress}/blueprints RequireAuthenticated',
    'GET /api/actions/{wallet}/{register} RequireAuthenticated',
    'GET /api/actions/{walletAddress}/{registerAddress}/{transactionHash} RequireAuthenticated',
    'POST /api/actions RequireAuthenticated',
    'POST /api/actions/reject RequireAuthenticated',
    'GET /api/operations/{operationId} RequireAuthenticated',
    'GET /api/operations RequireAuthenticated',
  ]),
  // Execution helpers
  ...routes('blueprint', 'served', [
    'POST /api/execution/validate RequireAuthenticated',
    'POST /api/execution/calculate RequireAuthenticated',
    'POST /api/execution/route RequireAuthenticated',
    'POST /api/execution/disclose RequireAuthenticated',
  ]),
  // Instances and disclosures
  ...routes('blueprint', 'served', [
    'POST /api/instances/ RequireAuthenticated',
    'GET /api/instances/{instanceId} RequireAuthenticated',
    'GET /api/instances/{instanceId}/actions/{actionId} RequireAuthenticated',
    'GET /api/instances/{instanceId}/definition RequireAuthenticated',
  ]),
  ...routes('blueprint', 'served', [
    'POST /api/instances/{id}/actions/{actionId}/execute RequireAuthenticated',
    'POST /api/instances/{id}/actions/{actionId}/reject RequireAuthenticated',
    'GET /api/instances/{id}/state RequireAuthenticated',
    'GET /api/workflows/{instanceId}/actions/{actionId}/disclosures RequireAuthenticated',
    'GET /api/workflows/{instanceId}/disclosures RequireAuthenticated',
  ]),
  // Blueprint versions and lifecycle
  ...routes('blueprint', 'served', [
    'GET /api/blueprints/{id}/versions RequireAuthenticated',
    'POST /api/blueprints/{id}/publish CanPublishBlueprints',
    'POST /api/blueprints/from-published CanManageBlueprints',
    'POST /api/blueprints/{id}/rehearsals CanManageBlueprints',
    'GET /api/blueprints/{id}/rehearsals/{rehearsalId} CanManageBlueprints',
    'DELETE /api/blueprints/{id}/rehearsals/{rehearsalId} CanManageBlueprints',
    'POST /api/blueprints/{id}/rehearsals/{rehearsalId}/role CanManageBlueprints',
    'POST /api/blueprints/{id}/rehearsals/{rehearsalId}/steps CanManageBlueprints',
  ]),
  // Wallet service
  ...routes('wallet', 'served', [
    'POST /api/wallets RequireAuthenticated',
    'POST /api/wallets/{id}/sign RequireAuthenticated',
    'POST /api/wallets/{id}/encrypt RequireAuthenticated',
    'POST /api/wallets/{id}/decrypt RequireAuthenticated',
    'POST /api/v1/wallets/{address}/access RequireAuthenticated',
    'POST /api/wallets/org/{orgId}/master-key RequireAdministrator',
    'POST /api/wallets/org/{orgId}/derive-key RequireAdministrator',
    'POST /api/wallets/org/{orgId}/keys/{derivedKeyId}/rotate RequireAdministrator',
    'DELETE /api/wallets/org/{orgId}/keys/{derivedKeyId} RequireAdministrator',
    'GET /api/v1/wallets/{address}/files/download RequireAuthenticated',
    'GET /api/v1/wallet/pending-applications RequireConsumerAudience',
    'PUT /api/v1/wallet/pending-applications RequireConsumerAudience',
    'DELETE /api/v1/wallet/pending-applications RequireConsumerAudience',
    'GET /api/v1/wallet/holder-keys RequireConsumerAudience',
    'POST /api/v1/wallet/presentations/sign-kb RequireConsumerAudience',
    'GET /api/v1/wallet/presentations RequireConsumerAudience',
    'DELETE /api/v1/wallet/presentations/{id} RequireConsumerAudience',
    'POST /api/v1/wallet/presentations/log RequireConsumerAudience',
    'GET /api/internal/wallets/{address}/issuer-cert-key RequireService',
    'POST /api/internal/wallets/{address}/issuer-cert-key/sign RequireService',
  ]),
  ...routes('wallet', 'pending', [
    'POST /api/v1/wallets/{walletAddress}/ethereum/transactions CanTransactEthereum',
    'POST /api/v1/wallets/{walletAddress}/ethereum/transactions/preview CanTransactEthereum',
    'GET /api/v1/ethereum/transactions/{chainId}/{txHash} RequireAuthenticated',
  ]),
  // Credential exchange service
  ...routes('credential', 'served', [
    'GET /.well-known/openid-credential-issuer Anonymous',
    'GET /.well-known/oauth-authorization-server Anonymous',
    'POST /token Anonymous',
    'POST /nonce Anonymous',
    'POST /credential Anonymous',
    'POST /api/v1/offers RequireService',
    'GET /api/v1/offers/{offerId} RequireService',
    'POST /api/v1/verifier/requests RequireAuthenticated',
    'GET /api/v1/verifier/requests/{requestId}/request-object Anonymous',
    'POST /api/v1/verifier/requests/{requestId}/direct-post Anonymous',
    'GET /api/v1/verifier/requests/{requestId}/result RequireAuthenticated',
  ]),
  // Trust administration
  ...routes('tenant', 'served', [
    'POST /api/v1/trust/trustlists/import RequireSystemAdmin',
    'GET /api/v1/trust/trustlists RequireSystemAdmin',
    'GET /api/v1/trust/trustlists/{trustListId} RequireSystemAdmin',
    'DELETE /api/v1/trust/trustlists/{trustListId} RequireSystemAdmin',
    'GET /api/v1/trust/trustlists/{trustListId}/anchors RequireService',
  ]),
  ...routes('tenant', 'served', [
    'GET /api/v1/trust/tenants/{tenantId}/orgs/{orgWalletAddress}/certificates RequireAdministrator',
    'POST /api/v1/trust/tenants/{tenantId}/orgs/{orgWalletAddress}/csr RequireAdministrator',
    'POST /api/v1/trust/tenants/{tenantId}/orgs/{orgWalletAddress}/certificates/import RequireAdministrator',
    'DELETE /api/v1/trust/tenants/{tenantId}/orgs/{orgWalletAddress}/certificates/{certificateId} RequireAdministrator',
    'GET /api/v1/trust/tenants/{tenantId}/orgs/{orgWalletAddress}/imported-cert-chain Anonymous',
    'POST /api/v1/trust/tenants/{tenantId}/orgs/{orgWalletAddress}/enrol RequireAdministrator',
  ]),
  // Hubs (section 6)
  ...routes('blueprint', 'served', ['GET /hubs/chat RequirePlatformUser']),
  ...routes('blueprint', 'served', ['GET /hubs/blueprint RequirePlatformUser']),
  ...routes('register', 'served', ['GET /hubs/register RequirePlatformUser']),
  ...routes('tenant', 'served', ['GET /hubs/tenant RequirePlatformUser']),
  ...routes('wallet', 'served', ['GET /hubs/wallet RequirePlatformUser']),
];

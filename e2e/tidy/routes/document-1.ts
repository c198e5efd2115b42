import { routes, type SpecifiedRoute } from './table.ts';

/** Routes of specification document 1, section 4, in its order. */
export const document1: readonly SpecifiedRoute[] = [
  // Token endpoints
  ...routes('tenant', 'served', [
    'POST /api/service-auth/token Anonymous',
    'POST /api/internal/service-auth/token Anonymous',
    'POST /api/internal/service-auth/token/delegated Anonymous',
    'POST /api/internal/service-auth/rotate-secret Anonymous',
  ]),
  // Organisations
  ...routes('tenant', 'served', [
    'GET /api/organizations RequireAdministrator',
    'GET /api/organizations/{id} RequireAuthenticated',
    'GET /api/organizations/by-subdomain/{subdomain} Anonymous',
    'POST /api/organizations RequireAuthenticated',
    'POST /api/organizations/{organizationId}/users RequireAdministrator',
    'GET /api/organizations/{organizationId}/users RequireAuthenticated',
  ]),
  // Platform governance
  ...routes('tenant', 'served', [
    'GET /api/platform/organizations RequireSystemAdmin',
    'PUT /api/platform/organizations/{orgId}/status RequireSystemAdmin',
    'GET /api/platform/organizations/{orgId}/users RequireSystemAdmin',
    'GET /api/platform/settings RequireSystemAdmin',
    'PUT /api/platform/settings/public-org RequireSystemAdmin',
  ]),
  // Organisation switching
  ...routes('tenant', 'served', [
    'GET /api/auth/me/organizations RequireAuthenticated',
    'POST /api/auth/switch-org RequireAuthenticated',
  ]),
  // Identity provider configuration
  ...routes('tenant', 'served', [
    'GET /api/organizations/{orgId}/idp RequireAdministrator',
    'PUT /api/organizations/{orgId}/idp RequireAdministrator',
    'DELETE /api/organizations/{orgId}/idp RequireAdministrator',
    'POST /api/organizations/{orgId}/idp/discover RequireAdministrator',
    'POST /api/organizations/{orgId}/idp/test RequireAdministrator',
    'POST /api/organizations/{orgId}/idp/toggle RequireAdministrator',
  ]),
  // OIDC sign-in and email verification
  ...routes('tenant', 'served', [
    'POST /api/auth/oidc/initiate Anonymous',
    'GET /api/auth/callback/{orgSubdomain} Anonymous',
    'POST /api/auth/oidc/complete-profile RequireAuthenticated',
  ]),
  ...routes('tenant', 'served', [
    'POST /api/auth/verify-email Anonymous',
    'POST /api/auth/resend-verification RequirePlatformUser',
  ]),
  // Login and token management
  ...routes('tenant', 'served', [
    'POST /api/auth/login Anonymous',
    'POST /api/auth/token/refresh Anonymous',
    'POST /api/auth/token/revoke Anonymous',
    'POST /api/auth/token/introspect RequireService',
    'POST /api/auth/token/revoke-user RequireAdministrator',
    'POST /api/auth/token/revoke-organization RequireAdministrator',
    'GET /api/auth/me RequireAuthenticated',
    'POST /api/auth/logout RequireAuthenticated',
  ]),
  ...routes('tenant', 'served', [
    'POST /api/auth/verify-2fa Anonymous',
    'POST /api/auth/register Anonymous',
    'POST /api/auth/login/2fa/send-email Anonymous',
  ]),
  // TOTP
  ...routes('tenant', 'served', [
    'POST /api/totp/setup RequirePlatformUser',
    'POST /api/totp/verify RequirePlatformUser',
    'POST /api/totp/validate Anonymous',
    'POST /api/totp/backup-validate Anonymous',
    'DELETE /api/totp RequirePlatformUser',
    'GET /api/totp/status RequirePlatformUser',
  ]),
  // Passkeys
  ...routes('tenant', 'served', [
    'POST /api/passkey/register/options RequirePlatformUser',
    'POST /api/passkey/register/verify RequirePlatformUser',
    'GET /api/passkey/credentials RequirePlatformUser',
    'DELETE /api/passkey/credentials/{id} RequirePlatformUser',
    'POST /api/auth/verify-passkey/options Anonymous',
    'POST /api/auth/verify-passkey Anonymous',
    'POST /api/auth/public/passkey/register/options Anonymous',
    'POST /api/auth/public/passkey/register/verify Anonymous',
    'POST /api/auth/passkey/assertion/options Anonymous',
    'POST /api/auth/passkey/assertion/verify Anonymous',
    'POST /api/auth/public/passkey/add/options RequirePlatformUser',
    'POST /api/auth/public/passkey/add/verify RequirePlatformUser',
  ]),
  // Social login
  ...routes('tenant', 'served', [
    'GET /api/auth/social/providers Anonymous',
    'POST /api/auth/public/social/initiate Anonymous',
    'POST /api/auth/public/social/callback Anonymous',
    'GET /auth/social/callback Anonymous',
    'GET /api/auth/public/methods RequirePlatformUser',
    'POST /api/auth/public/social/link RequirePlatformUser',
    'DELETE /api/auth/public/social/{linkId} RequirePlatformUser',
  ]),
  // Step-up social linking
  ...routes('tenant', 'served', [
    'POST /api/auth/social/link/challenge/initiate Anonymous',
    'POST /api/auth/social/link/challenge/verify Anonymous',
    'POST /api/auth/social/link/confirm Anonymous',
  ]),
  // Organisation administration
  ...routes('tenant', 'pending', [
    'POST /api/organizations/{organizationId}/invitations RequireAdministrator',
    'GET /api/organizations/{organizationId}/invitations RequireAdministrator',
    'POST /api/organizations/{organizationId}/invitations/{invitationId}/revoke RequireAdministrator',
    'GET /api/organizations/{organizationId}/domain-restrictions RequireAdministrator',
    'PUT /api/organizations/{organizationId}/domain-restrictions RequireAdministrator',
    'GET /api/organizations/{orgId}/settings RequireAdministrator',
    'PUT /api/organizations/{orgId}/settings RequireAdministrator',
    'GET /api/organizations/{organizationId}/custom-domain RequireAdministrator',
    'PUT /api/organizations/{organizationId}/custom-domain RequireAdministrator',
    'DELETE /api/organizations/{organizationId}/custom-domain RequireAdministrator',
    'POST /api/organizations/{organizationId}/custom-domain/verify RequireAdministrator',
    'GET /api/organizations/{organizationId}/dashboard RequireAdministrator',
  ]),
  ...routes('tenant', 'served', [
    'GET /api/organizations/{organizationId}/audit RequireAuditor',
    'GET /api/organizations/{organizationId}/audit/retention RequireAdministrator',
    'PUT /api/organizations/{organizationId}/audit/retention RequireAdministrator',
    'POST /api/internal/audit/refusals RequireService',
  ]),
  // Persona
  ...routes('tenant', 'pending', [
    'GET /me/persona RequirePlatformUser',
    'PUT /me/persona RequirePlatformUser',
    'DELETE /me/persona RequirePlatformUser',
  ]),
  ...routes('wallet', 'pending', [
    'POST /api/v1/wallets/{address}/persona/encrypt RequirePersonaCrypto',
    'POST /api/v1/wallets/{address}/persona/decrypt RequirePersonaCrypto',
  ]),
  // Inbox
  ...routes('tenant', 'served', [
    'GET /api/me/inbox RequirePlatformUser',
    'GET /api/me/inbox/unread-count RequirePlatformUser',
    'GET /api/me/inbox/{id} RequirePlatformUser',
    'POST /api/me/inbox/{id}/read RequirePlatformUser',
    'POST /api/me/inbox/{id}/dismiss RequirePlatformUser',
    'POST /api/me/inbox/mark-all-read RequirePlatformUser',
    'POST /api/internal/inbox RequireService',
  ]),
  // Enrolment and pairing
  ...routes('tenant', 'pending', [
    'POST /api/auth/enrol-session RequirePlatformUser',
    'POST /api/auth/enrol-session/redeem Anonymous',
    'POST /api/auth/enrol-session/short-code RequirePlatformUser',
    'POST /api/auth/enrol-session/redeem-short-code Anonymous',
    'POST /api/auth/pairing-resumption-email RequirePlatformUser',
    'GET /api/auth/pairing-resumption/redeem Anonymous',
  ]),
  // Devices
  ...routes('tenant', 'pending', [
    'GET /api/v1/me/devices RequirePlatformUser',
    'DELETE /api/v1/me/devices/{deviceId} RequirePlatformUser',
    'GET /api/v1/me/devices/has-any RequirePlatformUser',
  ]),
  // Account security
  ...routes('tenant', 'served', [
    'GET /api/me/auth-methods RequirePlatformUser',
    'POST /api/auth/challenge/initiate RequirePlatformUser',
    'POST /api/auth/challenge/verify RequirePlatformUser',
    'POST /api/me/2fa/email/enable RequirePlatformUser',
    'POST /api/me/2fa/email/verify RequirePlatformUser',
    'DELETE /api/me/2fa/email RequirePlatformUser',
    'POST /api/me/2fa/sms/phone RequirePlatformUser',
    'POST /api/me/2fa/sms/phone/verify RequirePlatformUser',
    'POST /api/me/2fa/sms/enable RequirePlatformUser',
    'DELETE /api/me/2fa/sms RequirePlatformUser',
  ]),
];

import type { Origin } from '../../requests/origin.ts';

/** Every action that an audit log may record, the actions of custom resources included. */
export const AUDIT_EVENT_TYPES = [
  'Login',
  'LoginFailed',
  'Logout',
  'TokenIssued',
  'TokenRefreshed',
  'TokenRevoked',
  'TokenValidated',
  'RefreshTokenReuseDetected',
  'PermissionDenied',
  'IdpConfigurationUpdated',
  'OrganizationPermissionsUpdated',
  'PassKeyRegistered',
  'PassKeyAuthentication',
  'PassKeyRemoved',
  'OrganizationCreated',
  'OrganizationUpdated',
  'OrganizationAdopted',
  'OrganizationReleased',
  'OrganizationDeactivated',
  'OrganizationSuspended',
  'OrganizationReactivated',
  'OrganizationDeleted',
  'OrganizationPurged',
  'PlatformSettingsUpdated',
  'UserAddedToOrganization',
  'UserUpdatedInOrganization',
  'UserRemovedFromOrganization',
  'InvitationSent',
  'InvitationAccepted',
  'InvitationRevoked',
  'InvitationExpired',
  'DomainRestrictionUpdated',
  'CustomDomainConfigured',
  'CustomDomainVerified',
  'CustomDomainFailed',
  'EmailVerificationSent',
  'EmailVerified',
  'AccountLockedOut',
  'AccountUnlockedByAdmin',
  'SelfRegistration',
  'OidcFirstLogin',
  'ProfileCompleted',
  'TwoFactorEnabled',
  'TwoFactorDisabled',
  'BackupCodeUsed',
  'SocialLinked',
  'SocialUnlinked',
  'PasswordChanged',
  'PasswordReset',
  'DeviceEnrolled',
  'DeviceRevoked',
  'PersonaReplaced',
  'PersonaDeleted',
  'ServicePrincipalUpserted',
  'ServicePrincipalRevoked',
  'ServicePrincipalSecretRotated',
  'WalletKeysUnwrapped',
  'WalletChanged',
  'TrustAnchorCreated',
  'CertificateEnrolled',
  'CertificateImported',
  'CertificateRetired',
  'CertificateRevoked',
  'TrustListImported',
  'TrustListRemoved',
  'CredentialIssued',
  'CredentialStatusChanged',
  'PresentationNotTrusted',
] as const;
export type AuditEventType = (typeof AUDIT_EVENT_TYPES)[number];

/** Parses the name of a type, case-insensitively; undefined for any other text. */
export function findAuditEventType(text: string): AuditEventType | undefined {
  return AUDIT_EVENT_TYPES.find((type) => type.toLowerCase() === text.trim().toLowerCase());
}

/** Details never contain tokens, codes or passwords. */
export interface AuditEvent {
  readonly organizationId: string;
  readonly occurredAtMs: number;
  readonly type: AuditEventType;
  readonly identityId?: string | undefined;
  readonly platformUserId?: string | undefined;
  readonly origin?: Origin | undefined;
  readonly success: boolean;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

/** A refusal that another service reports. */
export interface ReportedRefusal {
  readonly organizationId: string;
  /** For example `wallet.sign`. */
  readonly action: string;
  readonly reason: string;
  readonly resourceType?: string | undefined;
  readonly resourceId?: string | undefined;
  readonly platformUserId?: string | undefined;
  readonly occurredAtMs: number;
  /** Number of occurrences in that minute. */
  readonly occurrences: number;
}

export type AuditEventType =
  | 'Login'
  | 'LoginFailed'
  | 'Logout'
  | 'TokenIssued'
  | 'TokenRefreshed'
  | 'TokenRevoked'
  | 'RefreshTokenReuseDetected'
  | 'PermissionDenied'
  | 'AccountLockedOut'
  | 'AccountUnlockedByAdmin'
  | 'OrganizationCreated'
  | 'OrganizationUpdated'
  | 'OrganizationAdopted'
  | 'OrganizationReleased'
  | 'OrganizationSuspended'
  | 'OrganizationReactivated'
  | 'OrganizationDeleted'
  | 'OrganizationPurged'
  | 'PlatformSettingsUpdated'
  | 'UserAddedToOrganization'
  | 'ServicePrincipalUpserted'
  | 'ServicePrincipalRevoked'
  | 'ServicePrincipalSecretRotated';

/** Where a request came from, as far as the listener knows. */
export interface Origin {
  readonly ipAddress?: string | undefined;
  readonly userAgent?: string | undefined;
}

/** Details never hold tokens, codes or passwords. */
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

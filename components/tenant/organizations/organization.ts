import type { Branding } from '../database/schema.ts';

export type { Branding };

export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly subdomain: string;
  readonly status: 'Active' | 'Suspended';
  readonly orgType: 'Standard' | 'Public';
  readonly isPlatformOrg: boolean;
  readonly branding: Branding;
  readonly createdAtMs: number;
}

/** A stored organisation; it may be deleted. */
export interface StoredOrganization extends Organization {
  readonly selfRegistrationEnabled: boolean;
  /** Retention of its audit events. */
  readonly auditRetentionMonths: number;
  /** UID of the custom resource that manages it. */
  readonly resourceUid: string | undefined;
  /** Incremented by each change. */
  readonly version: number;
  readonly deletedAtMs: number | undefined;
}

/** How long the members of a deleted organisation are kept. */
export const deletedGraceMs = 30 * 86_400_000;

export const subdomainPattern = /^[a-z0-9](?:[a-z0-9-]{1,48}[a-z0-9])$/;

const reserved: ReadonlySet<string> = new Set(
  'public system admin api app auth wallet www mail static hubs internal status docs'.split(' '),
);

/** Subdomains that the platform reserves for itself. */
export function isReservedSubdomain(subdomain: string): boolean {
  return reserved.has(subdomain);
}

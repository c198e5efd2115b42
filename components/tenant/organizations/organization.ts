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

export const subdomainPattern = /^[a-z0-9](?:[a-z0-9-]{1,48}[a-z0-9])$/;

const reserved: ReadonlySet<string> = new Set(
  'public system admin api app auth wallet www mail static hubs internal status docs'.split(' '),
);

/** Names the platform needs for itself are never given to an organisation. */
export function isReservedSubdomain(subdomain: string): boolean {
  return reserved.has(subdomain);
}

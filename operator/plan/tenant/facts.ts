/** How the pages of an organisation look; what is absent is not set. */
export interface BrandingFacts {
  readonly primaryColor?: string | undefined;
  readonly secondaryColor?: string | undefined;
  readonly companyTagline?: string | undefined;
  readonly logoUrl?: string | undefined;
}

/** An organisation as the tenant service has it. */
export interface OrganizationFacts {
  readonly organizationId: string;
  readonly state: 'Active' | 'Suspended' | 'Terminating';
  readonly name: string;
  readonly subdomain: string;
  readonly organizationType: 'Standard' | 'Public';
  readonly branding: BrandingFacts;
  readonly userCount: number;
}

/** What the tenant service is asked to make true; the uid of the resource names the organisation. */
export interface DesiredOrganization {
  readonly name: string;
  readonly subdomain: string;
  readonly organizationType: 'Standard' | 'Public';
  readonly suspended: boolean;
  /** The whole of it; left as it is when absent. */
  readonly branding?: BrandingFacts | undefined;
  /** Id of an existing organisation that no resource stands for yet. */
  readonly organizationId?: string | undefined;
}

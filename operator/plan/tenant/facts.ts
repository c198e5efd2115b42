/** Branding of an organisation; absent members are not set. */
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

/** Desired state that is sent to the tenant service; the uid of the resource identifies the organisation. */
export interface DesiredOrganization {
  readonly name: string;
  readonly subdomain: string;
  readonly organizationType: 'Standard' | 'Public';
  readonly suspended: boolean;
  /** The complete branding; unchanged when absent. */
  readonly branding?: BrandingFacts | undefined;
  /** Id of an existing organisation without a resource. */
  readonly organizationId?: string | undefined;
}

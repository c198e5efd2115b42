import { z } from 'zod';
import { immutable, integer, keepsPresence, text, withRules } from './fields.ts';
import { type CustomResource, parserOf, statusFields, tolerant } from './object.ts';

/** Reserved subdomains; the tenant service refuses the same ones. */
export const RESERVED_SUBDOMAINS = [
  'public',
  'system',
  'admin',
  'api',
  'app',
  'auth',
  'wallet',
  'www',
  'mail',
  'static',
  'hubs',
  'internal',
  'status',
  'docs',
] as const;

const lineText = { pattern: /^[^\p{Cc}]*$/u, message: 'write one line, without control characters' } as const;
const colour = {
  min: 7,
  max: 7,
  pattern: /^#[0-9A-Fa-f]{6}$/,
  message: "write a colour such as '#1a2b3c', in quotes",
} as const;

const reserved: readonly string[] = RESERVED_SUBDOMAINS;

const subdomain = immutable(
  withRules(
    text({
      min: 3,
      max: 50,
      pattern: /^[a-z0-9][a-z0-9-]{1,48}[a-z0-9]$/,
      message:
        'write 3 to 50 lower-case letters, digits and hyphens that begin and end with a letter or digit',
    }),
    {
      cel: `!(self in [${RESERVED_SUBDOMAINS.map((name) => `'${name}'`).join(', ')}])`,
      message: 'the platform uses this subdomain itself; choose another one',
      holds: (value) => !reserved.includes(value),
    },
  ),
  'subdomain cannot be changed; make another Tenant',
);

const branding = z.strictObject({
  primaryColor: text(colour).describe('Primary colour of the pages.'),
  secondaryColor: text(colour).describe('Secondary colour of the pages.'),
  companyTagline: text({ max: 200, ...lineText })
    .optional()
    .describe('Line below the name.'),
  logoUrl: text({
    min: 9,
    max: 2048,
    pattern: /^https:[/][/][A-Za-z0-9][A-Za-z0-9.:-]*([/?#][-A-Za-z0-9._~:/?#@!$&()*+,;=%]*)?$/,
    message: 'write an address that begins with https://',
  })
    .optional()
    .describe('Address of the logo.'),
});

const idChange =
  'organizationId is stated when the object is created and never changes; delete the object and make another one';

export const tenantSpec = withRules(
  z.strictObject({
    displayName: text({ min: 3, max: 100, ...lineText }).describe('Name of the organisation.'),
    subdomain: subdomain.describe('Subdomain of the organisation in URLs.'),
    organizationType: immutable(
      z.enum(['Standard', 'Public']),
      'organizationType cannot be changed; make another Tenant',
    )
      .default('Standard')
      .describe('Members of a Public organisation sign up themselves.'),
    suspended: z.boolean().default(false).describe('Whether sign-in of all members is refused.'),
    branding: branding.optional().describe('Appearance of the pages of the organisation.'),
    organizationId: immutable(
      text({
        min: 36,
        max: 36,
        pattern: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
        message: 'write the id of the existing organisation: a UUID in lower case',
      }),
      idChange,
    )
      .optional()
      .describe('Id of an existing organisation to adopt.'),
    deletionPolicy: z
      .enum(['Suspend', 'Retain', 'Delete'])
      .default('Suspend')
      .describe('What happens to the organisation when this object is deleted.'),
  }),
  keepsPresence('organizationId', idChange),
).describe('Desired state.');

export type TenantSpec = Readonly<z.output<typeof tenantSpec>>;

const TENANT_STATES = ['Pending', 'Active', 'Suspended', 'Terminating'] as const;

const count = () => integer(0, 1_000_000_000).optional();

export const tenantStatus = z
  .object({
    ...statusFields,
    organizationId: text({ max: 36 }).optional().describe('Id of the organisation.'),
    state: z.enum(TENANT_STATES).optional().describe('State of the organisation.'),
    userCount: count().describe('Members of the organisation.'),
    registerCount: count().describe('Registers that the organisation sees.'),
  })
  .describe('Observed state, written by the operator.');

export type TenantStatus = Readonly<Partial<z.output<typeof tenantStatus>>>;
export type Tenant = CustomResource<TenantSpec, TenantStatus>;

/** Throws AppError invalid INVALID_CUSTOM_RESOURCE; see parserOf. */
export const parseTenant: (value: unknown) => Tenant = parserOf('Tenant', tenantSpec, tolerant(tenantStatus));

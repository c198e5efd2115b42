import { z } from 'zod';

const text = z.string();

/** RFC 6749, sections 4.3.2 and 6. */
export const grantForm = z.object({
  grant_type: z.enum(['password', 'refresh_token']),
  username: text.max(254).optional().describe('With password: the e-mail address.'),
  password: text.max(1024).optional(),
  organization_subdomain: text.max(64).optional().describe('With password: the organisation to sign in to.'),
  refresh_token: text.max(512).optional(),
  tier: text.max(64).optional(),
});

/** RFC 7009, section 2.1 and RFC 7662, section 2.1. */
export const tokenForm = z.object({
  token: text,
  token_type_hint: text.optional().describe('Has no effect.'),
});

const clientShape = {
  client_id: text.optional().describe('The client; may be given by HTTP Basic instead.'),
  client_secret: text.optional(),
  scope: text.optional().describe('Scopes separated by spaces; all granted scopes when absent.'),
};

/** RFC 6749, section 4.4.2. */
export const clientForm = z.object({ grant_type: z.literal('client_credentials'), ...clientShape });

/** RFC 8693, section 2.1, or the id of the user instead of a user token. */
export const delegationForm = z.object({
  grant_type: z
    .enum(['urn:ietf:params:oauth:grant-type:token-exchange', 'client_credentials'])
    .optional()
    .describe('Token exchange when absent.'),
  subject_token: text.optional().describe("The user's own token."),
  delegated_user_id: text.optional(),
  delegated_organization_id: text.optional(),
  ...clientShape,
});

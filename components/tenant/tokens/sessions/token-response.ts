import { z } from 'zod';
import type { IssuedTokens } from './session.ts';

/** The token response of the specification. */
export const tokenSchema = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.int().describe('Seconds.'),
    refresh_token: z.string(),
  })
  .meta({ id: 'TokenResponse' });

export function presentTokens(tokens: IssuedTokens): z.output<typeof tokenSchema> {
  return {
    access_token: tokens.accessToken,
    token_type: 'Bearer',
    expires_in: tokens.expiresIn,
    refresh_token: tokens.refreshToken,
  };
}

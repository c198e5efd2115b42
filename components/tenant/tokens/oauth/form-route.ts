import { z } from 'zod';
import { errorAnswer } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { oauthErrorHandler } from './oauth-reply.ts';

const text = z.string();

const oauthErrorSchema = z
  .object({
    error: text.describe('Error code of RFC 6749, section 5.2.'),
    error_description: text.optional(),
    code: text.optional().describe('Additional code for clients to match on.'),
  })
  .meta({ id: 'OAuthError' });

const refusal = (description: string) => ({ ...errorAnswer(oauthErrorSchema), description });

const oauthRefusals = {
  400: refusal(
    '`invalid_request`, `unsupported_grant_type` or `invalid_scope`; `invalid_client` with the code ' +
      'SHARED_SECRETS_DISABLED.',
  ),
  401: refusal('`invalid_grant` or `invalid_client`.'),
  403: refusal('`invalid_scope`, with the code TIER_NOT_ENTITLED or FORBIDDEN.'),
  413: refusal('`invalid_request`: the body is too large.'),
  415: refusal('`invalid_request`: the content type is not supported.'),
  429: refusal('`slow_down`; see Retry-After.'),
  '5xx': refusal('`server_error` or `temporarily_unavailable`.'),
};

/**
 * Members of a route that OAuth clients call with a form; `parametersOf` reads its body. The route also accepts the
 * parameters as a JSON object, which OpenAPI does not declare, because OAuth defines only forms and some generators fail
 * on a body with two media types.
 */
export function formRoute(log: () => Logger) {
  return {
    method: 'POST',
    consumes: 'application/x-www-form-urlencoded',
    refusals: [],
    protocol: {
      errorHandler: oauthErrorHandler(log),
      validatorCompiler: () => (data: unknown) => ({ value: data }),
      refusals: oauthRefusals,
    },
  } as const;
}

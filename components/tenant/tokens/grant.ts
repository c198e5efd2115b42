import { HUMAN_TIERS, type HumanTier } from '#core/identity/tiers.ts';
import type { Origin } from '../requests/origin.ts';
import { tier as tierSchema } from '../requests/tier.ts';
import { isSecondStep } from '../sign-in/second-step/login-token.ts';
import { type SignInDeps, signIn } from '../sign-in/sign-in.ts';
import { OAuthError } from './oauth/oauth.ts';
import { getParameter, type Parameters } from './oauth/parameters.ts';
import { type RefreshDeps, refresh } from './refresh.ts';
import type { IssuedTokens } from './sessions/session.ts';

export interface GrantDeps {
  readonly signIn: SignInDeps;
  readonly refresh: RefreshDeps;
  readonly passwordGrantEnabled: boolean;
}

function tierOf(parameters: Parameters): HumanTier | undefined {
  const parsed = tierSchema.optional().safeParse(parameters.get('tier'));
  if (parsed.success) return parsed.data;
  throw new OAuthError(400, 'invalid_request', `tier is none of ${HUMAN_TIERS.join(', ')}`);
}

const maxPasswordLength = 1024;

/** The public token endpoint: password and refresh_token. @throws OAuthError and the errors of both use cases */
export async function grantTokens(
  deps: GrantDeps,
  parameters: Parameters,
  origin: Origin,
): Promise<IssuedTokens> {
  const grantType = getParameter(parameters, 'grant_type');
  const tier = tierOf(parameters);
  if (grantType === 'refresh_token') {
    return refresh(deps.refresh, { refreshToken: getParameter(parameters, 'refresh_token'), tier, origin });
  }
  if (grantType !== 'password' || !deps.passwordGrantEnabled) {
    throw new OAuthError(400, 'unsupported_grant_type', 'this endpoint does not support the grant type');
  }
  const email = getParameter(parameters, 'username');
  const password = getParameter(parameters, 'password');
  if (email.length > 254 || password.length > maxPasswordLength) {
    throw new OAuthError(400, 'invalid_request', 'username or password is too long');
  }
  const organizationSubdomain = parameters.get('organization_subdomain');
  const result = await signIn(deps.signIn, { email, password, organizationSubdomain, tier, origin });
  if (!isSecondStep(result)) return result;
  throw new OAuthError(403, 'mfa_required', 'the account wants a second factor: POST /api/auth/verify-2fa', {
    members: { login_token: result.loginToken, available_methods: result.methods },
  });
}

import { refusal } from '../../errors.ts';
import type { TokenIssuer } from '../../tokens/sessions/issue.ts';
import type { PrincipalDirectory } from './directory.ts';

const clientId = 'service-tenant';

/**
 * The token of this service for its outgoing calls, minted for each call: a mint costs one signature here. It is not
 * issued to a client, so it has no audit row.
 *
 * @throws AppError unavailable SERVICE_TOKEN_REFUSED while the principal is not active
 */
export function createOwnToken(deps: {
  readonly principals: PrincipalDirectory;
  readonly issuer: TokenIssuer;
}): () => Promise<string> {
  return async () => {
    const principal = await deps.principals.find(clientId);
    if (principal?.isActive !== true) {
      throw refusal('SERVICE_TOKEN_REFUSED', { message: `the principal ${clientId} is not active` });
    }
    return deps.issuer.forService(principal, { scopes: principal.scopes }).accessToken;
  };
}

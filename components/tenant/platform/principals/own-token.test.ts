import { expect, it } from 'vitest';
import type { ServiceSubject } from '../../tokens/claims/claims.ts';
import type { ServiceGrant, TokenIssuer } from '../../tokens/sessions/issue.ts';
import { createOwnToken } from './own-token.ts';
import type { Principal } from './principal.ts';

const own: Principal = {
  principalId: 'p',
  clientId: 'service-tenant',
  serviceName: 'tenant',
  secretHash: undefined,
  scopes: ['wallets:status'],
  canSignSystem: false,
  isActive: true,
};

function tokenOf(principal: Principal | undefined) {
  const minted: { readonly subject: ServiceSubject; readonly grant: ServiceGrant }[] = [];
  const issuer: TokenIssuer = {
    forUser: () => {
      throw new Error('not for people');
    },
    forService: (subject, grant) => {
      minted.push({ subject, grant });
      return { accessToken: `token-${minted.length}`, expiresIn: 300 };
    },
  };
  const find = async (clientId: string) => (clientId === 'service-tenant' ? principal : undefined);
  const principals = { find, peek: () => undefined, invalidate: () => undefined };
  return { minted, token: createOwnToken({ principals, issuer }) };
}

it('mints a new token of the own principal with its scopes for each call', async () => {
  const { token, minted } = tokenOf(own);
  expect([await token(), await token()]).toEqual(['token-1', 'token-2']);
  expect(minted[0]).toMatchObject({
    subject: { clientId: 'service-tenant', principalId: 'p' },
    grant: { scopes: ['wallets:status'] },
  });
});

it.each([
  ['suspended', { ...own, isActive: false }],
  ['missing', undefined],
])('refuses while the principal is %s', async (_name, principal) => {
  const { token, minted } = tokenOf(principal);
  await expect(token()).rejects.toMatchObject({ kind: 'unavailable', code: 'SERVICE_TOKEN_REFUSED' });
  expect(minted).toEqual([]);
});

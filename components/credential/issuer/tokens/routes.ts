import { z } from 'zod';
import { type App, acceptForms, addRoute, answer, findFormText, json, parseForm } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { PRE_AUTHORIZED_GRANT } from '../../protocol/grants.ts';
import { walletRoute } from '../../protocol/route.ts';
import { type Nonces, nonceSeconds } from '../nonces/nonces.ts';
import { type DpopProof, judgeDpop } from './dpop.ts';
import { type ExchangeDeps, exchangeCode, tokenSeconds } from './exchange.ts';

export interface TokenRouteDeps extends ExchangeDeps {
  readonly nonces: Nonces;
  readonly issuerUrl: string;
  readonly log: Logger;
}

const text = z.string();

const tokenForm = z.object({
  grant_type: z.literal(PRE_AUTHORIZED_GRANT),
  'pre-authorized_code': text.max(256),
  tx_code: text.max(64).optional().describe('What the person typed, where the offer requires it.'),
});

const tokenSchema = z
  .object({
    access_token: text,
    token_type: z.enum(['Bearer', 'DPoP']),
    expires_in: z.int(),
    c_nonce: text,
    c_nonce_expires_in: z.int(),
  })
  .meta({ id: 'CredentialAccessToken' });

/** Mounts the token endpoint of wallets (OpenID4VCI 1.0, section 6). */
export function mountTokenRoutes(app: App, deps: TokenRouteDeps): void {
  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    mountForm(scope, deps);
    done();
  });
}

function mountForm(app: App, deps: TokenRouteDeps): void {
  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'POST',
    path: '/token',
    operationId: 'createWalletToken',
    tag: 'Credential exchange',
    summary: 'An access token for the code of an offer',
    description: 'With a DPoP proof (RFC 9449) the token is bound to its key.',
    policy: 'Anonymous',
    consumes: 'application/x-www-form-urlencoded',
    headers: z.object({ dpop: text.optional() }),
    body: {
      schema: tokenForm,
      example: { grant_type: PRE_AUTHORIZED_GRANT, 'pre-authorized_code': 'oaKazRN8I0IbtZ0C7JuMn5' },
    },
    bodyLimitBytes: 16_384,
    answers: {
      200: json('The token.', tokenSchema, { 'dpop-nonce': 'A nonce for DPoP proofs (RFC 9449).' }),
    },
    handle: async ({ request }) => {
      const form = readForm(request.body);
      const nowMs = deps.clock.nowMs();
      const dpop = await readDpop(deps, request.headers['dpop'], nowMs);
      const token = await exchangeCode(deps, { ...form, dpop });
      const given = {
        access_token: token,
        token_type: dpop === undefined ? ('Bearer' as const) : ('DPoP' as const),
        expires_in: tokenSeconds,
        c_nonce: deps.nonces.create('c_nonce', nowMs),
        c_nonce_expires_in: nonceSeconds,
      };
      return answer(200, given, dpop && { 'dpop-nonce': deps.nonces.create('dpop', nowMs) });
    },
  });
}

/** @throws ProtocolError invalid_request, unsupported_grant_type, invalid_grant */
function readForm(body: unknown): { readonly code: string; readonly txCode: string | undefined } {
  const form = findFormText(body);
  if (form === undefined) throw new ProtocolError('invalid_request', 'the body is no form');
  const parameters = parseForm(form);
  const grantType = parameters.get('grant_type');
  if (grantType === undefined) throw new ProtocolError('invalid_request', 'grant_type is missing');
  if (grantType !== PRE_AUTHORIZED_GRANT)
    throw new ProtocolError('unsupported_grant_type', `grant_type must be ${PRE_AUTHORIZED_GRANT}`);
  const code = parameters.get('pre-authorized_code');
  if (code === undefined) throw new ProtocolError('invalid_request', 'pre-authorized_code is missing');
  return { code, txCode: parameters.get('tx_code') };
}

async function readDpop(
  deps: TokenRouteDeps,
  header: string | string[] | undefined,
  nowMs: number,
): Promise<DpopProof | undefined> {
  if (header === undefined) return undefined;
  if (typeof header !== 'string') throw new ProtocolError('invalid_dpop_proof', 'several proofs were sent');
  return judgeDpop(header, { nonces: deps.nonces, method: 'POST', url: `${deps.issuerUrl}/token`, nowMs });
}

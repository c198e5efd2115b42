import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import type { Certificate } from '#core/trust/certificate.ts';
import {
  type App,
  acceptForms,
  addRoute,
  answer,
  type FormParameters,
  findFormText,
  json,
  parseForm,
} from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { PRE_AUTHORIZED_GRANT } from '../../protocol/grants.ts';
import { isHighAssurance, type Profile } from '../../protocol/profile.ts';
import { walletRoute } from '../../protocol/route.ts';
import { authenticateClient } from '../attestation/client.ts';
import { type DpopProof, readDpop } from '../nonces/dpop.ts';
import { type Nonces, nonceSeconds } from '../nonces/nonces.ts';
import { exchangeAuthorizationCode, refreshTokens } from './authorize.ts';
import { type ExchangeDeps, exchangeCode, tokenSeconds } from './exchange.ts';

export interface TokenRouteDeps extends ExchangeDeps {
  readonly nonces: Nonces;
  readonly issuerUrl: string;
  readonly profile: Profile;
  /** Authorities of attesters of wallets. */
  readonly authorities: readonly Certificate[];
  readonly log: Logger;
}

const text = z.string();

const tokenForm = z.object({
  grant_type: z
    .enum([PRE_AUTHORIZED_GRANT, 'authorization_code', 'refresh_token'])
    .describe('The first in the profile openid4vc-1.0, the others in haip-1.0.'),
  'pre-authorized_code': text.max(256).optional(),
  tx_code: text.max(64).optional().describe('What the person typed, where the offer requires it.'),
  code: text.max(256).optional(),
  code_verifier: text.max(128).optional(),
  redirect_uri: text.optional(),
  refresh_token: text.max(256).optional(),
  client_id: text.optional(),
});

const tokenSchema = z
  .object({
    access_token: text,
    refresh_token: text.optional().describe('In haip-1.0, for fresh copies of the credential.'),
    token_type: z.enum(['Bearer', 'DPoP']),
    expires_in: z.int(),
    authorization_details: z
      .array(
        z.object({
          type: z.literal('openid_credential'),
          credential_configuration_id: text,
          credential_identifiers: z.array(text),
        }),
      )
      .optional()
      .describe('Where the pushed request had them.'),
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
    headers: z.object({
      dpop: text.optional(),
      'oauth-client-attestation': text.optional(),
      'oauth-client-attestation-pop': text.optional(),
    }),
    body: {
      schema: tokenForm,
      example: { grant_type: PRE_AUTHORIZED_GRANT, 'pre-authorized_code': 'oaKazRN8I0IbtZ0C7JuMn5' },
    },
    bodyLimitBytes: 16_384,
    answers: {
      200: json('The token.', tokenSchema, { 'dpop-nonce': 'A nonce for DPoP proofs (RFC 9449).' }),
    },
    handle: async ({ request }) => {
      const text = findFormText(request.body);
      if (text === undefined) throw new ProtocolError('invalid_request', 'the body is no form');
      const asking = { form: parseForm(text), headers: request.headers, nowMs: deps.clock.nowMs() };
      const given = isHighAssurance(deps.profile)
        ? await giveBound(deps, asking)
        : await giveForOffer(deps, asking);
      const { nowMs } = asking;
      const body = {
        ...given,
        expires_in: tokenSeconds,
        c_nonce: deps.nonces.create('c_nonce', nowMs),
        c_nonce_expires_in: nonceSeconds,
      };
      const isBound = given.token_type === 'DPoP';
      return answer(200, body, isBound ? { 'dpop-nonce': deps.nonces.create('dpop', nowMs) } : {});
    },
  });
}

interface Asking {
  readonly form: FormParameters;
  readonly headers: IncomingHttpHeaders;
  readonly nowMs: number;
}

/** The grant of the profile openid4vc-1.0: the code of an offer. */
async function giveForOffer(deps: TokenRouteDeps, { form, headers, nowMs }: Asking) {
  const grant = readGrant(form);
  const dpop = proofOf(deps, headers, nowMs);
  const token = await exchangeCode(deps, { ...grant, dpop });
  return { access_token: token, token_type: dpop === undefined ? ('Bearer' as const) : ('DPoP' as const) };
}

/** The grants of the profile haip-1.0: an authorization code, and a refresh token; bound to a key and an attested client. */
async function giveBound(deps: TokenRouteDeps, { form, headers, nowMs }: Asking) {
  const grantType = form.get('grant_type');
  if (grantType !== 'authorization_code' && grantType !== 'refresh_token')
    throw new ProtocolError(
      'unsupported_grant_type',
      'grant_type must be authorization_code or refresh_token',
    );
  const context = { authorities: deps.authorities, audience: deps.issuerUrl, nowMs };
  const client = authenticateClient(headers, form.get('client_id'), context);
  const dpop = proofOf(deps, headers, nowMs);
  if (dpop === undefined) throw new ProtocolError('invalid_dpop_proof', 'a DPoP proof is required');
  const tokens =
    grantType === 'refresh_token'
      ? await refreshTokens(deps, { client, dpop, refreshToken: required(form, 'refresh_token') })
      : await exchangeAuthorizationCode(deps, {
          client,
          dpop,
          code: required(form, 'code'),
          verifier: required(form, 'code_verifier'),
          redirectUri: form.get('redirect_uri'),
        });
  return {
    access_token: tokens.accessToken,
    refresh_token: tokens.refreshToken,
    token_type: 'DPoP' as const,
    ...(tokens.detailed !== undefined && { authorization_details: [detailOf(tokens.detailed)] }),
  };
}

/** What a token is for (OpenID4VCI 1.0, section 6.2): an offer has one credential, so its configuration identifies it. */
function detailOf(configurationId: string) {
  return {
    type: 'openid_credential' as const,
    credential_configuration_id: configurationId,
    credential_identifiers: [configurationId],
  };
}

function required(form: FormParameters, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw new ProtocolError('invalid_request', `${name} is missing`);
  return value;
}

/** @throws ProtocolError invalid_request, unsupported_grant_type */
function readGrant(form: FormParameters): { readonly code: string; readonly txCode: string | undefined } {
  if (required(form, 'grant_type') !== PRE_AUTHORIZED_GRANT)
    throw new ProtocolError('unsupported_grant_type', `grant_type must be ${PRE_AUTHORIZED_GRANT}`);
  return { code: required(form, 'pre-authorized_code'), txCode: form.get('tx_code') };
}

function proofOf(
  { nonces, issuerUrl }: TokenRouteDeps,
  headers: IncomingHttpHeaders,
  nowMs: number,
): DpopProof | undefined {
  return readDpop(headers['dpop'], { nonces, url: `${issuerUrl}/token`, nowMs });
}

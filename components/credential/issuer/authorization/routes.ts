import { z } from 'zod';
import type { Certificate } from '#core/trust/certificate.ts';
import {
  type App,
  acceptForms,
  addRoute,
  answer,
  empty,
  findFormText,
  json,
  media,
  parseForm,
} from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { isHighAssurance, type Profile } from '../../protocol/profile.ts';
import { walletRoute } from '../../protocol/route.ts';
import { authenticateClient } from '../attestation/client.ts';
import { readDpop } from '../nonces/dpop.ts';
import type { Nonces } from '../nonces/nonces.ts';
import { type ApproveDeps, approve } from './approve.ts';
import { codeForm, gonePage, pageHeaders } from './page.ts';
import { type PushDeps, pushedSeconds, pushRequest } from './push.ts';

export interface AuthorizationRouteDeps extends PushDeps, ApproveDeps {
  readonly nonces: Nonces;
  readonly profile: Profile;
  /** Authorities of attesters of wallets and keys. */
  readonly authorities: readonly Certificate[];
  readonly log: Logger;
}

const text = z.string();
const tag = 'Credential exchange';

const pushForm = z.object({
  response_type: z.literal('code'),
  client_id: text.optional(),
  issuer_state: text.describe('From the offer.'),
  redirect_uri: text,
  code_challenge: text,
  code_challenge_method: z.literal('S256'),
  scope: text.optional().describe('The scope of the offered configuration; or authorization_details.'),
  authorization_details: text.optional(),
  state: text.optional(),
  dpop_jkt: text.optional().describe('Thumbprint of the key that the code will be bound to (RFC 9449).'),
});

const authorizeParameters = { request_uri: text.max(200), client_id: text.max(500) };

/** Mounts pushed requests and their approval; they are served in the profile haip-1.0 alone. */
export function mountAuthorizationRoutes(app: App, deps: AuthorizationRouteDeps): void {
  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    mountPush(scope, deps);
    mountApproval(scope, deps);
    done();
  });
}

function mountPush(app: App, deps: AuthorizationRouteDeps): void {
  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'POST',
    path: '/par',
    operationId: 'createPushedRequest',
    tag,
    summary: 'Push an authorization request (RFC 9126); in haip-1.0',
    policy: 'Anonymous',
    consumes: 'application/x-www-form-urlencoded',
    description: 'With a DPoP proof (RFC 9449) the code is bound to its key.',
    headers: z.object({
      dpop: text.optional(),
      'oauth-client-attestation': text.optional(),
      'oauth-client-attestation-pop': text.optional(),
    }),
    body: {
      schema: pushForm,
      example: {
        response_type: 'code',
        issuer_state: 'oaKazRN8I0IbtZ0C7JuMn5',
        redirect_uri: 'https://wallet.example/back',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
        scope: 'site-permit',
      },
    },
    bodyLimitBytes: 65_536,
    answers: {
      201: json('Where to send the person.', z.object({ request_uri: text, expires_in: z.int() }), {
        'dpop-nonce': 'A nonce for DPoP proofs (RFC 9449).',
      }),
    },
    handle: async ({ request }) => {
      assertProfile(deps.profile);
      const form = formOf(request);
      const { nonces, issuerUrl } = deps;
      const nowMs = deps.clock.nowMs();
      const client = authenticateClient(request.headers, form.get('client_id'), {
        authorities: deps.authorities,
        audience: issuerUrl,
        nowMs,
      });
      const dpop = readDpop(request.headers['dpop'], { nonces, url: `${issuerUrl}/par`, nowMs });
      const requestUri = await pushRequest(deps, form, { client, dpop });
      return answer(
        201,
        { request_uri: requestUri, expires_in: pushedSeconds },
        { 'dpop-nonce': nonces.create('dpop', nowMs) },
      );
    },
  });
}

const pageAnswers = {
  200: media('text/html', 'The page that asks for the transaction code.'),
  303: empty('To the wallet, with a code or an error.'),
};

function mountApproval(app: App, deps: AuthorizationRouteDeps): void {
  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'GET',
    path: '/authorize',
    operationId: 'getApprovalPage',
    tag,
    summary: 'Ask the person for the transaction code; in haip-1.0',
    policy: 'Anonymous',
    query: z.object(authorizeParameters),
    answers: pageAnswers,
    handle: ({ request }) => respond(deps, request.query, undefined),
  });
  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'POST',
    path: '/authorize',
    operationId: 'submitTransactionCode',
    tag,
    summary: 'The transaction code of the person; in haip-1.0',
    policy: 'Anonymous',
    consumes: 'application/x-www-form-urlencoded',
    body: {
      schema: z.object({ ...authorizeParameters, tx_code: text.max(64) }),
      example: {
        request_uri: 'urn:ietf:params:oauth:request_uri:...',
        client_id: 'wallet',
        tx_code: '123456',
      },
    },
    bodyLimitBytes: 8_192,
    answers: pageAnswers,
    handle: ({ request }) => {
      const form = formOf(request);
      return respond(deps, Object.fromEntries(form), form.get('tx_code') ?? '');
    },
  });
}

async function respond(deps: AuthorizationRouteDeps, parameters: unknown, txCode: string | undefined) {
  assertProfile(deps.profile);
  const parsed = z.object(authorizeParameters).safeParse(parameters);
  if (!parsed.success) throw new ProtocolError('invalid_request', 'request_uri and client_id are required');
  const asking = { requestUri: parsed.data.request_uri, clientId: parsed.data.client_id, txCode };
  const approval = await approve(deps, asking);
  if (approval.kind === 'redirect') return answer(303, undefined, { ...pageHeaders, location: approval.to });
  const html = approval.kind === 'gone' ? gonePage : codeForm(approval, asking);
  return answer(200, html, { ...pageHeaders, 'content-type': 'text/html; charset=utf-8' });
}

function assertProfile(profile: Profile): void {
  if (!isHighAssurance(profile))
    throw new ProtocolError('invalid_request', 'authorization requests are served in the profile haip-1.0', {
      status: 404,
    });
}

function formOf({ body }: { readonly body: unknown }) {
  const form = findFormText(body);
  if (form === undefined) throw new ProtocolError('invalid_request', 'the body is no form');
  return parseForm(form);
}

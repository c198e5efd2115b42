import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, answer, empty, json } from '#kit/http/http.ts';
import { refusals } from '../../../errors.ts';
import { unstored } from '../../../requests/answers.ts';
import { originOf } from '../../../requests/origin.ts';
import { challengeHeaders, challengeOf, proofLifetimeMs } from '../../challenge/gate.ts';
import { PROOF_METHODS } from '../../challenge/prove.ts';
import { code, iss, presentVisit, state, visitSchema } from '../social/routes.ts';
import { beginLink, endLink, type OwnLinkDeps, removeLink } from './own.ts';
import { confirmLink, initiateLinkProof, type PendingLinkDeps, verifyLinkProof } from './pending.ts';

const tag = 'Social sign-in';
const provider = z.string().min(1).max(40);

export function mountLinking(app: App, deps: PendingLinkDeps): void {
  for (const base of ['/api/auth/public/social', '/api/auth/social']) mountOwn(app, deps, base);
  mountPending(app, deps);
}

/** Under the path of the specification, and under the later one that clients of the reference use. */
function mountOwn(app: App, deps: OwnLinkDeps, base: string): void {
  const isAlias = base !== '/api/auth/public/social';
  const route = {
    tag,
    policy: 'RequirePlatformUser',
    rateLimit: 'Authentication',
    headers: challengeHeaders,
    ...(isAlias && { hidden: true as const }),
  } as const;
  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${base}/link`,
    operationId: isAlias ? 'createSocialLinkAlias' : 'createSocialLink',
    summary: 'Connect an identity of a social provider with the account',
    description:
      'Without `code` it begins: the answer has the address to open. With `code` and `state` it ends.',
    noStore: true,
    body: {
      schema: z
        .object({ provider, code: code.optional(), state: state.optional(), iss })
        .refine((body) => (body.code === undefined) === (body.state === undefined), {
          message: 'code and state belong together',
          path: ['state'],
        }),
      example: { provider: 'github' },
    },
    answers: { 200: json('The address to open.', visitSchema), 204: empty('They are connected.') },
    refusals: [
      ...refusals('UNKNOWN_PROVIDER', 'insufficient_user_authentication', 'INVALID_STATE'),
      ...refusals('SESSION_CHANGED', 'PROVIDER_REFUSED', 'IDENTITY_LINKED'),
    ],
    handle: async ({ caller, body, request }) => {
      const { provider: named, code: given, state: known } = body;
      if (given === undefined || known === undefined) {
        const challenge = challengeOf(request);
        return answer(200, presentVisit(await beginLink(deps, { caller, challenge, provider: named })));
      }
      const sent = { code: given, state: known, iss: body.iss };
      await endLink(deps, { caller, provider: named, answer: sent, origin: originOf(request) });
      return answer(204, undefined);
    },
  });
  addRoute(app, {
    ...route,
    method: 'DELETE',
    path: `${base}/:linkId`,
    operationId: isAlias ? 'deleteSocialLinkAlias' : 'deleteSocialLink',
    summary: 'Disconnect an identity of a social provider',
    params: z.object({ linkId: identifier }),
    answers: { 204: empty('It no longer signs in.') },
    refusals: refusals('LINK_NOT_FOUND', 'LAST_AUTH_METHOD', 'insufficient_user_authentication'),
    handle: ({ caller, params, request }) =>
      removeLink(deps, {
        caller,
        challenge: challengeOf(request),
        linkId: params.linkId,
        origin: originOf(request),
      }),
  });
}

const linkPendingToken = z.string().min(1).max(256);
const method = z.preprocess(
  (value) =>
    typeof value === 'string'
      ? (PROOF_METHODS.find((name) => name.toLowerCase() === value.trim().toLowerCase()) ?? value)
      : value,
  z.enum(PROOF_METHODS),
);

const pendingPath = '/api/auth/social/link';
const pendingRoute = {
  method: 'POST',
  tag,
  policy: 'Anonymous',
  rateLimit: 'PlatformAuth',
  noStore: true,
} as const;

function mountPending(app: App, deps: PendingLinkDeps): void {
  mountPendingProof(app, deps);
  mountConfirmation(app, deps);
}

function mountPendingProof(app: App, deps: PendingLinkDeps): void {
  addRoute(app, {
    ...pendingRoute,
    path: `${pendingPath}/challenge/initiate`,
    operationId: 'initiateLinkProof',
    summary: 'Begin to prove that the account with the address is the same person’s',
    body: {
      schema: z.object({ linkPendingToken, preferredMethod: method.nullish() }),
      example: { linkPendingToken: 'of the sign-in', preferredMethod: 'Totp' },
    },
    answers: {
      200: json(
        'The method, and what it needs.',
        z.object({ method: z.enum(PROOF_METHODS), payload: z.unknown() }).meta({ id: 'LinkProofRequest' }),
      ),
    },
    refusals: refusals('INVALID_LINK_TOKEN', 'NoMethodAvailable', 'PASSKEYS_UNAVAILABLE'),
    handle: async ({ body, request }) =>
      initiateLinkProof(deps, {
        linkPendingToken: body.linkPendingToken,
        preferredMethod: body.preferredMethod ?? undefined,
        origin: originOf(request),
      }),
  });
  addRoute(app, {
    ...pendingRoute,
    path: `${pendingPath}/challenge/verify`,
    operationId: 'verifyLinkProof',
    summary: 'Prove that the account with the address is the same person’s',
    body: {
      schema: z.object({ linkPendingToken, method, proof: z.unknown() }),
      example: { linkPendingToken: 'of the sign-in', method: 'Totp', proof: { code: '123456' } },
    },
    answers: {
      200: json(
        'A token for the header X-Auth-Challenge; it holds for this connection alone.',
        z
          .object({ token: z.string(), expiresIn: z.int(), expiresInSeconds: z.int() })
          .meta({ id: 'LinkProofToken' }),
      ),
    },
    refusals: [
      ...refusals('INVALID_LINK_TOKEN', 'proof_tier_insufficient', 'WRONG_PROOF', 'UNKNOWN_CREDENTIAL'),
      ...refusals('INVALID_ASSERTION', 'RATE_LIMITED'),
    ],
    handle: async ({ body, request }) => {
      const token = await verifyLinkProof(deps, { ...body, origin: originOf(request) });
      const seconds = proofLifetimeMs / 1000;
      return unstored({ token, expiresIn: seconds, expiresInSeconds: seconds });
    },
  });
}

function mountConfirmation(app: App, deps: PendingLinkDeps): void {
  addRoute(app, {
    ...pendingRoute,
    path: `${pendingPath}/confirm`,
    operationId: 'approveLink',
    summary: 'Connect the identity with the account, and sign in',
    headers: challengeHeaders,
    body: { schema: z.object({ linkPendingToken }), example: { linkPendingToken: 'of the sign-in' } },
    answers: {
      200: json(
        'The tokens.',
        z
          .object({ accessToken: z.string(), refreshToken: z.string(), expiresIn: z.int() })
          .meta({ id: 'LinkedSession' }),
      ),
    },
    refusals: [
      ...refusals('INVALID_LINK_TOKEN', 'INVALID_CHALLENGE', 'WRONG_OPERATION', 'IDENTITY_LINKED'),
      ...refusals('NOT_A_MEMBER', 'ORGANIZATION_SIGN_IN_UNAVAILABLE'),
    ],
    handle: async ({ body, request }) => {
      const challenge = challengeOf(request);
      const confirmation = { ...body, challenge, origin: originOf(request) };
      const { accessToken, refreshToken, expiresIn } = await confirmLink(deps, confirmation);
      return unstored({ accessToken, refreshToken, expiresIn });
    },
  });
}

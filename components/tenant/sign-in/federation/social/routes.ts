import { z } from 'zod';
import { type App, acceptForms, addRoute, answer, empty, json } from '#kit/http/http.ts';
import { publicOrganizationRefusals, refusal, refusals } from '../../../errors.ts';
import { unstored } from '../../../requests/answers.ts';
import { originOf } from '../../../requests/origin.ts';
import { parametersOf } from '../../../tokens/oauth/form-body.ts';
import { presentTokens, tokenSchema } from '../../../tokens/sessions/token-response.ts';
import { bindBrowser, browserOf } from '../browser.ts';
import { SOCIAL_PROVIDERS } from '../providers/settings.ts';
import { findVisit } from '../visit.ts';
import { arriveBySocial } from './browser-callback.ts';
import { beginSocialSignIn, endSocialSignIn, type SocialDeps, socialCallbackPath } from './sign-in.ts';

const tag = 'Social sign-in';
const provider = z.string().min(1).max(40);
const returnTo = z.string().min(1).max(2048).nullish();
export const state = z.string().min(1).max(256);
export const code = z.string().min(1).max(4096);
export const iss = z.string().max(2048).optional().describe('RFC 9207, where the provider sends it.');

const visitFields = { authorizationUrl: z.string(), authorization_url: z.string(), state: z.string() };
export const visitSchema = z.object(visitFields).meta({ id: 'ProviderVisit' });

export function presentVisit(visit: { readonly authorizationUrl: string; readonly state: string }) {
  const { authorizationUrl, state: value } = visit;
  return { authorizationUrl, authorization_url: authorizationUrl, state: value };
}

const linkRequired = z
  .object({
    outcome: z.literal('LinkRequired'),
    linkPendingToken: z.string().describe('For the three routes of `/api/auth/social/link`; 300 s.'),
  })
  .meta({ id: 'LinkRequired' });

const signedIn = tokenSchema
  .extend({ outcome: z.literal('Authenticated'), is_new_user: z.boolean() })
  .meta({ id: 'SocialSession' });

const entryRefusals = [
  ...refusals('INVALID_STATE', 'UNKNOWN_PROVIDER', 'PROVIDER_REFUSED', 'ProviderUnverified'),
  ...refusals('ExistingUnverified', 'NoExistingAccount', 'REGISTRATION_CLOSED', 'NOT_A_MEMBER'),
  ...publicOrganizationRefusals('PUBLIC_ORG_DISABLED'),
];

export function mountSocial(app: App, deps: SocialDeps): void {
  mountProviders(app, deps);
  for (const base of ['/api/auth/public/social', '/api/auth/social']) mountSignIn(app, deps, base);
  mountBrowser(app, deps);
}

function mountProviders(app: App, deps: SocialDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/auth/social/providers',
    operationId: 'listSocialProviders',
    tag,
    summary: 'The social providers that are configured',
    policy: 'Anonymous',
    rateLimit: 'Api',
    answers: {
      200: json(
        'Their names.',
        z.object({ providers: z.array(z.enum(SOCIAL_PROVIDERS)) }).meta({ id: 'SocialProviders' }),
      ),
    },
    refusals: [],
    handle: () => ({ providers: [...deps.providers.values()].map(({ name }) => name) }),
  });
}

/** Under the path of the specification, and under the later one that clients of the reference use. */
function mountSignIn(app: App, deps: SocialDeps, base: string): void {
  const isAlias = base !== '/api/auth/public/social';
  const route = {
    method: 'POST',
    tag,
    policy: 'Anonymous',
    rateLimit: 'Authentication',
    noStore: true,
    ...(isAlias && { hidden: true as const }),
  } as const;
  addRoute(app, {
    ...route,
    path: `${base}/initiate`,
    operationId: isAlias ? 'startSocialSignInAlias' : 'startSocialSignIn',
    summary: 'Begin to sign in by a social provider',
    body: {
      schema: z.object({
        provider,
        surface: z.enum(['app', 'wallet']).nullish(),
        returnTo,
        redirectUri: returnTo.describe('A page that posts what the provider sends back; of an allowed host.'),
      }),
      example: { provider: 'google', returnTo: '/app/' },
    },
    answers: {
      200: json('The address to open.', visitSchema, {
        'set-cookie': 'The browser that may end the sign-in, for ten minutes.',
      }),
    },
    refusals: refusals('UNKNOWN_PROVIDER', 'RETURN_ADDRESS_REFUSED'),
    handle: async ({ body, request }) => {
      const browser = bindBrowser(deps.baseUrl, request.headers.cookie);
      const visit = await beginSocialSignIn(deps, {
        provider: body.provider,
        surface: body.surface ?? 'app',
        redirectUri: body.redirectUri ?? undefined,
        returnTo: body.returnTo ?? undefined,
        browser: browser.hash,
      });
      return answer(200, presentVisit(visit), { pragma: 'no-cache', 'set-cookie': browser.setCookie });
    },
  });
  addRoute(app, {
    ...route,
    path: `${base}/callback`,
    operationId: isAlias ? 'verifySocialSignInAlias' : 'verifySocialSignIn',
    summary: 'End a sign-in by a social provider',
    description: 'For pages that providers send browsers back to. No other origin can send this request.',
    body: {
      schema: z.object({ provider, code, state, iss }),
      example: { provider: 'google', code: 'of the provider', state: 'of the provider' },
    },
    answers: { 200: json('The tokens, or what connects the account.', z.union([signedIn, linkRequired])) },
    refusals: entryRefusals,
    handle: async ({ body, request }) => {
      const { provider: named, ...parameters } = body;
      const outcome = await endSocialSignIn(deps, {
        answer: parameters,
        judge: ({ subject }) => subject === named.trim().toLowerCase(),
        origin: originOf(request),
      });
      if (outcome.kind === 'link-required') {
        return unstored({ outcome: 'LinkRequired' as const, linkPendingToken: outcome.linkPendingToken });
      }
      const { tokens, isNew } = outcome;
      return unstored({ outcome: 'Authenticated' as const, ...presentTokens(tokens), is_new_user: isNew });
    },
  });
}

const callbackQuery = z.object({
  state,
  code: code.optional(),
  error: z.string().max(200).optional(),
  iss,
  user: z.string().max(2048).optional().describe('Apple sends the name once, as JSON.'),
});

export const noReferrer = { 'referrer-policy': 'no-referrer', pragma: 'no-cache' } as const;

function mountBrowser(app: App, deps: SocialDeps): void {
  addRoute(app, {
    method: 'GET',
    path: socialCallbackPath,
    operationId: 'getSocialCallback',
    tag,
    summary: 'Where social providers send the browser back to',
    policy: 'Anonymous',
    rateLimit: 'Authentication',
    noStore: true,
    withoutHead: true,
    query: callbackQuery,
    answers: { 302: empty('To a page; what it needs is in the fragment.') },
    refusals: entryRefusals,
    handle: async ({ query, request }) => {
      const browser = browserOf(deps.baseUrl, request.headers.cookie);
      const location = await arriveBySocial(deps, { ...query, browser, origin: originOf(request) });
      return answer(302, undefined, { ...noReferrer, location });
    },
  });
  // A form that another site posts carries no cookie: the browser is sent on to the route above.
  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    addRoute(scope, {
      method: 'POST',
      path: socialCallbackPath,
      operationId: 'submitSocialCallback',
      tag,
      summary: 'Where providers post their answer to, as a form',
      policy: 'Anonymous',
      rateLimit: 'Authentication',
      consumes: 'application/x-www-form-urlencoded',
      bodyLimitBytes: 16_384,
      noStore: true,
      answers: { 303: empty('To the same path, by GET.') },
      refusals: refusals('INVALID_STATE'),
      handle: async ({ request }) => {
        const posted = callbackQuery.safeParse(readForm(request.body));
        if (!posted.success) throw refusal('INVALID_STATE');
        await findVisit(deps, posted.data.state, ({ payload }) => payload.intent !== 'organization');
        const known = Object.entries(posted.data).filter((each) => each[1] !== undefined);
        const location = `${socialCallbackPath}?${new URLSearchParams(known as [string, string][])}`;
        return answer(303, undefined, { ...noReferrer, location });
      },
    });
    done();
  });
}

function readForm(body: unknown): Readonly<Record<string, unknown>> {
  try {
    return Object.fromEntries(parametersOf(body));
  } catch {
    throw refusal('INVALID_STATE');
  }
}

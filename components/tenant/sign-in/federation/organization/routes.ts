import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import { type App, addRoute, answer, empty, json } from '#kit/http/http.ts';
import { refusals } from '../../../errors.ts';
import { SECOND_FACTORS } from '../../../people/means/means.ts';
import { unstored } from '../../../requests/answers.ts';
import { originOf } from '../../../requests/origin.ts';
import { bindBrowser, browserOf } from '../browser.ts';
import { withTokens } from '../social/browser-callback.ts';
import { code, iss, noReferrer, presentVisit, state, visitSchema } from '../social/routes.ts';
import { finishProfile, type ProfileDeps } from './profile.ts';
import { beginOrganizationSignIn, endOrganizationSignIn, type OrganizationOutcome } from './sign-in.ts';

const tag = 'Organisation sign-in';

const resultSchema = z
  .object({
    success: z.boolean(),
    outcome: z.enum(['Authenticated', 'SecondFactorRequired', 'LinkRequired']),
    accessToken: z.string().optional(),
    refreshToken: z.string().optional(),
    expiresIn: z.int().optional(),
    requiresProfileCompletion: z.boolean(),
    requires2FA: z.boolean(),
    partialToken: z.string().optional().describe('The login token of POST /api/auth/verify-2fa.'),
    availableMethods: z.array(z.enum(SECOND_FACTORS)).optional(),
    linkPendingToken: z.string().optional().describe('For the three routes of `/api/auth/social/link`.'),
    userId: z.string().optional(),
    isFirstLogin: z.boolean(),
  })
  .meta({ id: 'OrganisationSignIn' });

type Result = z.output<typeof resultSchema>;

function present(outcome: OrganizationOutcome): Result {
  const none = { requiresProfileCompletion: false, requires2FA: false, isFirstLogin: false };
  switch (outcome.kind) {
    case 'signed-in': {
      const { tokens, identityId: userId, isNew, isProfileComplete } = outcome;
      const state = { requiresProfileCompletion: !isProfileComplete, isFirstLogin: isNew };
      return { success: true, outcome: 'Authenticated', ...none, ...tokens, ...state, userId };
    }
    case 'second-step': {
      const { loginToken: partialToken, methods, identityId: userId } = outcome;
      const step = { partialToken, availableMethods: [...methods], userId };
      return { success: true, outcome: 'SecondFactorRequired', ...none, ...step, requires2FA: true };
    }
    case 'link-required': {
      const { linkPendingToken } = outcome;
      return { success: true, outcome: 'LinkRequired', ...none, linkPendingToken };
    }
  }
}

/** Where the browser is sent; pages of this installation show what is still wanted. */
function locationOf(outcome: OrganizationOutcome, returnTo: string): string {
  switch (outcome.kind) {
    case 'signed-in':
      return withTokens(returnTo, outcome.tokens);
    case 'second-step': {
      const { loginToken: login_token, methods } = outcome;
      const fragment = new URLSearchParams({ login_token, available_methods: methods.join(' ') });
      return `/auth/login?${new URLSearchParams({ returnUrl: returnTo })}#${fragment}`;
    }
    case 'link-required': {
      const { linkPendingToken } = outcome;
      return `/app/#${new URLSearchParams({ outcome: 'LinkRequired', linkPendingToken })}`;
    }
  }
}

export function mountOrganizationSignIn(app: App, deps: ProfileDeps): void {
  mountVisit(app, deps);
  mountProfile(app, deps);
}

const route = { tag, rateLimit: 'Authentication', noStore: true } as const;

function mountVisit(app: App, deps: ProfileDeps): void {
  addRoute(app, {
    ...route,
    policy: 'Anonymous',
    method: 'POST',
    path: '/api/auth/oidc/initiate',
    operationId: 'startOrganizationSignIn',
    summary: 'Begin to sign in by the identity provider of an organisation',
    body: {
      schema: z.object({
        orgSubdomain: z.string().min(1).max(64),
        redirectUrl: z.string().min(1).max(2048).nullish(),
      }),
      example: { orgSubdomain: 'engines', redirectUrl: '/app/' },
    },
    answers: {
      200: json('The address to open.', visitSchema, {
        'set-cookie': 'The browser that may end the sign-in, for ten minutes.',
      }),
    },
    refusals: refusals('ORGANIZATION_SIGN_IN_UNAVAILABLE', 'RETURN_ADDRESS_REFUSED'),
    handle: async ({ body, request }) => {
      const browser = bindBrowser(deps.baseUrl, request.headers.cookie);
      const redirectUrl = body.redirectUrl ?? undefined;
      const start = { orgSubdomain: body.orgSubdomain, redirectUrl, browser: browser.hash };
      const visit = await beginOrganizationSignIn(deps, start);
      return answer(200, presentVisit(visit), { pragma: 'no-cache', 'set-cookie': browser.setCookie });
    },
  });
  addRoute(app, {
    ...route,
    policy: 'Anonymous',
    method: 'GET',
    path: '/api/auth/callback/:orgSubdomain',
    operationId: 'getOrganizationCallback',
    summary: 'Where the identity provider of an organisation sends the browser back to',
    description: 'JSON where the client accepts nothing else, or the sign-in named no destination.',
    withoutHead: true,
    params: z.object({ orgSubdomain: z.string().min(1).max(64) }),
    query: z.object({ state, code: code.optional(), error: z.string().max(200).optional(), iss }),
    answers: {
      200: json('The tokens, or what is still wanted.', resultSchema),
      302: empty('To the destination; what it needs is in the fragment.'),
    },
    refusals: [
      ...refusals('ORGANIZATION_SIGN_IN_UNAVAILABLE', 'INVALID_STATE', 'PROVIDER_REFUSED'),
      ...refusals('ExistingUnverified', 'NOT_A_MEMBER'),
    ],
    handle: async ({ params, query, request }) => {
      const browser = browserOf(deps.baseUrl, request.headers.cookie);
      const end = { ...params, answer: query, browser, origin: originOf(request) };
      const { outcome, returnTo } = await endOrganizationSignIn(deps, end);
      const wantsJson = request.headers.accept?.trim().toLowerCase() === 'application/json';
      if (returnTo === undefined || wantsJson) return answer(200, present(outcome), noReferrer);
      return answer(302, undefined, { ...noReferrer, location: locationOf(outcome, returnTo) });
    },
  });
}

function mountProfile(app: App, deps: ProfileDeps): void {
  addRoute(app, {
    ...route,
    policy: 'RequireAuthenticated',
    admits: ['profile', 'password'],
    method: 'POST',
    path: '/api/auth/oidc/complete-profile',
    operationId: 'updateProfile',
    summary: 'Complete the profile of a person whose identity provider tells too little',
    body: {
      schema: z.object({
        displayName: readableName.min(1).max(100).optional(),
        email: z.email().max(254).optional(),
      }),
      example: { displayName: 'Ada Lovelace', email: 'ada@example.org' },
    },
    answers: {
      200: json(
        'The user, and tokens that are not restricted.',
        z
          .object({
            success: z.boolean(),
            user: z.object({
              id: z.string(),
              displayName: z.string(),
              email: z.string().nullable(),
              emailVerified: z.boolean(),
            }),
            accessToken: z.string(),
            refreshToken: z.string(),
            expiresIn: z.int(),
          })
          .meta({ id: 'CompletedProfile' }),
      ),
    },
    refusals: refusals('PROFILE_ALREADY_COMPLETE', 'ADDRESS_TAKEN', 'SESSION_ENDED'),
    handle: async ({ caller, body, request }) => {
      const { displayName, email } = body;
      const done = await finishProfile(deps, { caller, displayName, email, origin: originOf(request) });
      const user = {
        id: done.userId,
        displayName: done.displayName,
        email: done.email ?? null,
        emailVerified: false,
      };
      return unstored({ success: true, user, ...done.tokens });
    },
  });
}

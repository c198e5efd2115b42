import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusals } from '../errors.ts';
import { doneSchema, unstored } from '../requests/answers.ts';
import { originOf } from '../requests/origin.ts';
import { tier } from '../requests/tier.ts';
import { presentTokens, tokenSchema } from '../tokens/sessions/token-response.ts';
import { meSchema, presentCaller } from './me.ts';
import { type SignInDeps, signIn } from './sign-in.ts';
import { type SignOutDeps, signOut } from './sign-out.ts';

const loginSchema = z.object({
  email: readableLine.min(1).max(254),
  password: z.string().min(1).max(1024),
  organizationSubdomain: z.string().max(64).optional(),
  tier: tier.optional(),
  returnTo: z.string().max(2048).optional(),
});

export interface SignInRouteDeps {
  readonly signIn: SignInDeps;
  readonly signOut: SignOutDeps;
}

const tag = 'Sign-in';

export function mountSignIn(app: App, deps: SignInRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/login',
    operationId: 'signInUser',
    tag,
    summary: 'Sign in with e-mail address and password',
    policy: 'Anonymous',
    rateLimit: 'Authentication',
    body: {
      schema: loginSchema,
      example: { email: 'ada@example.org', password: 'blue kettle winter parade', tier: 'platform' },
    },
    answers: { 200: json('The tokens.', tokenSchema) },
    refusals: refusals('INVALID_CREDENTIALS', 'TIER_NOT_ENTITLED'),
    noStore: true,
    handle: async ({ body, request }) =>
      unstored(presentTokens(await signIn(deps.signIn, { ...body, origin: originOf(request) }))),
  });
  addRoute(app, {
    method: 'GET',
    path: '/api/auth/me',
    operationId: 'getCurrentUser',
    tag,
    summary: 'The caller as the token describes it',
    policy: 'RequireAuthenticated',
    rateLimit: 'none',
    answers: { 200: json('The caller.', meSchema) },
    refusals: [],
    noStore: true,
    handle: ({ caller }) => unstored(presentCaller(caller)),
  });
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/logout',
    operationId: 'signOutUser',
    tag,
    summary: 'End the session of the token',
    policy: 'RequireAuthenticated',
    rateLimit: 'none',
    answers: { 200: json('The session has ended.', doneSchema) },
    refusals: [],
    handle: async ({ caller, request }) => {
      await signOut(deps.signOut, caller, originOf(request));
      return { success: true, message: 'Signed out.' };
    },
  });
}

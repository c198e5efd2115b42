import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusals } from '../errors.ts';
import { SECOND_FACTORS } from '../people/means/means.ts';
import { doneSchema, unstored } from '../requests/answers.ts';
import { originOf } from '../requests/origin.ts';
import { tier } from '../requests/tier.ts';
import { presentTokens, tokenSchema } from '../tokens/sessions/token-response.ts';
import { meSchema, presentCaller } from './me.ts';
import { isSecondStep, type SecondStep } from './second-step/login-token.ts';
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

const methodsSchema = z.array(z.enum(SECOND_FACTORS)).describe('Strongest first.');

/** Both spellings, since the specification names the token in one and shows the others in the other. */
const secondStepSchema = z
  .object({
    requires_two_factor: z.literal(true),
    requiresTwoFactor: z.literal(true),
    login_token: z.string(),
    loginToken: z.string(),
    available_methods: methodsSchema,
    availableMethods: methodsSchema,
    message: z.string(),
  })
  .meta({ id: 'SecondFactorRequired' });

function presentSecondStep({ loginToken, methods }: SecondStep): z.output<typeof secondStepSchema> {
  return {
    requires_two_factor: true,
    requiresTwoFactor: true,
    login_token: loginToken,
    loginToken,
    available_methods: [...methods],
    availableMethods: [...methods],
    message: 'The account wants a second factor.',
  };
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
    answers: {
      200: json('The tokens, or what the second factor needs.', z.union([tokenSchema, secondStepSchema])),
    },
    refusals: refusals('INVALID_CREDENTIALS', 'TIER_NOT_ENTITLED'),
    noStore: true,
    handle: async ({ body, request }) => {
      const result = await signIn(deps.signIn, { ...body, origin: originOf(request) });
      return unstored(isSecondStep(result) ? presentSecondStep(result) : presentTokens(result));
    },
  });
  addRoute(app, {
    method: 'GET',
    path: '/api/auth/me',
    operationId: 'getCurrentUser',
    tag,
    summary: 'The caller as the token describes it',
    policy: 'RequireAuthenticated',
    admits: ['profile'],
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
    admits: ['profile', 'password'],
    rateLimit: 'none',
    answers: { 200: json('The session has ended.', doneSchema) },
    refusals: [],
    handle: async ({ caller, request }) => {
      await signOut(deps.signOut, caller, originOf(request));
      return { success: true, message: 'Signed out.' };
    },
  });
}

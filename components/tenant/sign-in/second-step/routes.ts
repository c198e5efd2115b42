import { z } from 'zod';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import { unstored } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { tier } from '../../requests/tier.ts';
import type { IssuedTokens } from '../../tokens/sessions/session.ts';
import { presentTokens, tokenSchema } from '../../tokens/sessions/token-response.ts';
import { countBackupCodes } from '../second-factors/store.ts';
import { confirmSignIn, type SecondStepDeps, sendSignInCode } from './complete.ts';

const tag = 'Sign-in';
const loginToken = z.string().min(1).max(256);
const code = z.string().trim().min(1).max(16);
const exampleToken = 'b2theSx4c0J2S1d0bWpVdjJvWmQ5d1lGcmJ0Q3hQaGE';
const wrong = refusals('INVALID_LOGIN_TOKEN', 'WRONG_SECOND_FACTOR');

const confirmSchema = z.object({
  login_token: loginToken,
  code,
  is_backup_code: z.boolean().default(false),
  method: z
    .preprocess(
      (value) => (typeof value === 'string' ? value.trim().toLowerCase() : value),
      z.enum(['totp', 'backup', 'email', 'sms', 'passkey']),
    )
    .default('totp'),
  tier: tier.optional(),
});

const validatedSchema = z
  .object({
    success: z.boolean(),
    message: z.string(),
    accessToken: z.string(),
    refreshToken: z.string(),
    expiresIn: z.int().describe('Seconds.'),
  })
  .meta({ id: 'ValidatedSignIn' });

export function mountSecondStep(app: App, deps: SecondStepDeps): void {
  mountConfirmation(app, deps);
  mountSending(app, deps);
  mountValidation(app, deps);
}

function mountConfirmation(app: App, deps: SecondStepDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/verify-2fa',
    operationId: 'verifySecondFactor',
    tag,
    summary: 'Complete a sign-in by its second factor',
    policy: 'Anonymous',
    rateLimit: 'TotpValidate',
    body: { schema: confirmSchema, example: { login_token: exampleToken, code: '123456', method: 'totp' } },
    answers: { 200: json('The tokens.', tokenSchema) },
    refusals: [...wrong, ...refusals('PASSKEY_ROUTE')],
    noStore: true,
    handle: async ({ body, request }) => {
      const method = body.is_backup_code ? 'backup' : body.method;
      if (method === 'passkey') throw refusal('PASSKEY_ROUTE');
      const { login_token: token } = body;
      const confirmation = { loginToken: token, code: body.code, method, tier: body.tier };
      return unstored(
        presentTokens(await confirmSignIn(deps, { ...confirmation, origin: originOf(request) })),
      );
    },
  });
}

function mountSending(app: App, deps: SecondStepDeps): void {
  for (const method of ['email', 'sms'] as const) {
    addRoute(app, {
      method: 'POST',
      path: `/api/auth/login/2fa/send-${method}`,
      operationId: method === 'email' ? 'issueEmailCode' : 'issueSmsCode',
      tag,
      summary: `Have a code for a sign-in sent by ${method === 'email' ? 'e-mail' : 'text message'}`,
      policy: 'Anonymous',
      rateLimit: 'PlatformAuth',
      body: { schema: z.object({ login_token: loginToken }), example: { login_token: exampleToken } },
      answers: { 202: empty('A code is on its way.') },
      refusals: refusals('INVALID_LOGIN_TOKEN', 'FACTOR_NOT_ENABLED', 'SMS_UNAVAILABLE', 'RATE_LIMITED'),
      handle: ({ body }) => sendSignInCode(deps, body.login_token, method),
    });
  }
}

function present(tokens: IssuedTokens) {
  return {
    success: true,
    message: 'Signed in.',
    accessToken: tokens.accessToken,
    refreshToken: tokens.refreshToken,
    expiresIn: tokens.expiresIn,
  };
}

function mountValidation(app: App, deps: SecondStepDeps): void {
  const route = {
    method: 'POST',
    tag,
    policy: 'Anonymous',
    rateLimit: 'TotpValidate',
    noStore: true,
  } as const;
  addRoute(app, {
    ...route,
    path: '/api/totp/validate',
    operationId: 'validateTotp',
    summary: 'Complete a sign-in by a code of the authenticator app',
    body: { schema: z.object({ loginToken, code }), example: { loginToken: exampleToken, code: '123456' } },
    answers: { 200: json('The tokens.', validatedSchema) },
    refusals: wrong,
    handle: async ({ body, request }) =>
      unstored(present(await confirmSignIn(deps, { ...body, method: 'totp', origin: originOf(request) }))),
  });
  addRoute(app, {
    ...route,
    path: '/api/totp/backup-validate',
    operationId: 'validateBackupCode',
    summary: 'Complete a sign-in by a backup code, which is used up',
    body: {
      schema: z.object({ loginToken, backupCode: code }),
      example: { loginToken: exampleToken, backupCode: 'ABCD-EFGH' },
    },
    answers: {
      200: json(
        'The tokens.',
        validatedSchema.extend({ remainingCodes: z.int() }).meta({ id: 'ValidatedByBackup' }),
      ),
    },
    refusals: wrong,
    handle: async ({ body, request }) => {
      const found = await deps.loginTokens.find(deps.db.read, body.loginToken);
      const confirmation = { loginToken: body.loginToken, code: body.backupCode, method: 'backup' } as const;
      const tokens = await confirmSignIn(deps, { ...confirmation, origin: originOf(request) });
      const remainingCodes =
        typeof found === 'string' ? 0 : await countBackupCodes(deps.db.read, found.subject);
      return unstored({ ...present(tokens), remainingCodes });
    },
  });
}

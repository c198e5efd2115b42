import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import { type App, addRoute, answer, empty, json } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { doneSchema } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { challengeHeaders, challengeOf } from '../../sign-in/challenge/gate.ts';
import { type RegisterDeps, register } from './register.ts';
import { changeEmail, disown, resendVerification, type VerifyDeps, verifyEmail } from './verify.ts';

export interface RegistrationRouteDeps {
  readonly register: RegisterDeps;
  readonly verify: VerifyDeps;
}

const tag = 'Registration';
const email = z.string().trim().max(254).pipe(z.email());
const tokenBody = {
  schema: z.object({ token: z.string().min(1).max(256) }),
  example: { token: 'b2theSx4c0J2S1d0bWpVdjJvWmQ5d1lGcmJ0Q3hQaGE' },
};

export function mountRegistration(app: App, deps: RegistrationRouteDeps): void {
  mountRegister(app, deps);
  mountVerification(app, deps);
  mountOwnAddress(app, deps);
}

function mountRegister(app: App, deps: RegistrationRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/register',
    operationId: 'registerUser',
    tag,
    summary: 'Register in a Public organisation',
    description: 'The answer is the same for an address that has an account; its owner gets a mail.',
    policy: 'Anonymous',
    rateLimit: 'PlatformAuth',
    body: {
      schema: z.object({
        orgSubdomain: z.string().min(1).max(64),
        email,
        password: z.string().min(1).max(1024),
        displayName: readableName.max(100),
      }),
      example: {
        orgSubdomain: 'public',
        email: 'ada@example.org',
        password: 'blue kettle winter parade',
        displayName: 'Ada',
      },
    },
    answers: {
      201: json('A mail is on its way.', doneSchema.extend({ userId: z.uuid() }).meta({ id: 'Registered' })),
    },
    refusals: refusals('UNKNOWN_SUBDOMAIN', 'REGISTRATION_CLOSED', 'PASSWORD_REFUSED'),
    handle: async ({ body, request }) => {
      const userId = await register(deps.register, { ...body, origin: originOf(request) });
      return answer(201, { success: true, userId, message: 'Open the mail that was sent to the address.' });
    },
  });
}

function mountVerification(app: App, deps: RegistrationRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/verify-email',
    operationId: 'verifyEmail',
    tag,
    summary: 'Confirm an e-mail address by the token of its mail',
    policy: 'Anonymous',
    rateLimit: 'PlatformAuth',
    body: tokenBody,
    answers: { 200: json('It is confirmed.', doneSchema) },
    refusals: refusals('TOKEN_UNKNOWN', 'TOKEN_USED', 'TOKEN_EXPIRED'),
    handle: async ({ body, request }) => {
      await verifyEmail(deps.verify, body.token, originOf(request));
      return { success: true, message: 'The address is confirmed.' };
    },
  });
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/register/disown',
    operationId: 'deleteRegistration',
    tag,
    summary: 'Delete an unverified account that another person made with the own address',
    policy: 'Anonymous',
    rateLimit: 'PlatformAuth',
    body: tokenBody,
    answers: { 200: json('It is deleted.', doneSchema) },
    refusals: refusals('TOKEN_UNKNOWN', 'TOKEN_USED', 'TOKEN_EXPIRED'),
    handle: async ({ body, request }) => {
      await disown(deps.verify, body.token, originOf(request));
      return { success: true, message: 'The account is deleted.' };
    },
  });
}

function mountOwnAddress(app: App, deps: RegistrationRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/resend-verification',
    operationId: 'issueVerificationMail',
    tag,
    summary: 'Have the verification mail sent again',
    description: 'Three times an hour.',
    policy: 'RequirePlatformUser',
    rateLimit: 'PlatformAuth',
    answers: { 200: json('A mail is on its way, unless the address is confirmed already.', doneSchema) },
    refusals: refusals('RATE_LIMITED'),
    handle: async ({ caller, request }) => {
      await resendVerification(deps.verify, caller, originOf(request));
      return { success: true, message: 'A mail is on its way, unless the address is confirmed already.' };
    },
  });
  addRoute(app, {
    method: 'PUT',
    path: '/api/me/email',
    operationId: 'updateEmail',
    tag,
    summary: 'Give the account another e-mail address',
    description: 'It holds once it is confirmed by the token of the mail that is sent there.',
    policy: 'RequirePlatformUser',
    rateLimit: 'PlatformAuth',
    headers: challengeHeaders,
    body: { schema: z.object({ email }), example: { email: 'ada@example.net' } },
    answers: { 202: empty('A mail is on its way to the address.') },
    refusals: refusals('insufficient_user_authentication'),
    handle: ({ caller, body, request }) => {
      const origin = originOf(request);
      return changeEmail(deps.verify, { caller, email: body.email, challenge: challengeOf(request), origin });
    },
  });
}

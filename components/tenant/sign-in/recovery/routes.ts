import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import { type App, addRoute, empty } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { originOf } from '../../requests/origin.ts';
import { challengeHeaders, challengeOf } from '../challenge/gate.ts';
import {
  changeOwnPassword,
  type OwnPasswordDeps,
  removeOwnPassword,
  setOwnPassword,
} from './own-password.ts';
import { forgotPassword, type RecoverDeps, resetPassword } from './recover.ts';

export interface RecoveryRouteDeps {
  readonly recover: RecoverDeps;
  readonly own: OwnPasswordDeps;
}

const tag = 'Sign-in';
const secret = z.string().min(1).max(1024);
const example = { password: 'blue kettle winter parade' };

export function mountRecovery(app: App, deps: RecoveryRouteDeps): void {
  mountReset(app, deps);
  mountOwnPassword(app, deps);
}

function mountReset(app: App, deps: RecoveryRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/password/forgot',
    operationId: 'recoverPassword',
    tag,
    summary: 'Have a link for a new password mailed',
    description: 'The answer is the same for an address without an account.',
    policy: 'Anonymous',
    rateLimit: 'PlatformAuth',
    body: {
      schema: z.object({
        email: readableLine.min(1).max(254),
        organizationSubdomain: z.string().max(64).optional(),
      }),
      example: { email: 'ada@example.org' },
    },
    answers: { 202: empty('A mail is on its way if the address has an account.') },
    refusals: [],
    handle: ({ body }) => forgotPassword(deps.recover, body),
  });
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/password/reset',
    operationId: 'executePasswordReset',
    tag,
    summary: 'Set a password by the token of a mail',
    policy: 'Anonymous',
    rateLimit: 'PlatformAuth',
    body: {
      schema: z.object({ token: z.string().min(1).max(256), newPassword: secret }),
      example: {
        token: 'b2theSx4c0J2S1d0bWpVdjJvWmQ5d1lGcmJ0Q3hQaGE',
        newPassword: 'blue kettle winter parade',
      },
    },
    answers: { 204: empty('The password is set, and every session has ended.') },
    refusals: refusals('TOKEN_UNKNOWN', 'TOKEN_USED', 'TOKEN_EXPIRED', 'PASSWORD_REFUSED'),
    handle: ({ body, request }) => resetPassword(deps.recover, { ...body, origin: originOf(request) }),
  });
}

function mountOwnPassword(app: App, deps: RecoveryRouteDeps): void {
  const route = {
    method: 'POST',
    tag,
    policy: 'RequirePlatformUser',
    rateLimit: 'PlatformAuth',
    headers: challengeHeaders,
  } as const;
  addRoute(app, {
    ...route,
    path: '/api/auth/password/set',
    operationId: 'createPassword',
    summary: 'Give the account its first password',
    body: { schema: z.object({ password: secret }), example },
    answers: { 204: empty('It is set.') },
    refusals: refusals('PASSWORD_ALREADY_SET', 'PASSWORD_REFUSED', 'insufficient_user_authentication'),
    handle: ({ caller, body, request }) =>
      setOwnPassword(deps.own, {
        caller,
        ...body,
        challenge: challengeOf(request),
        origin: originOf(request),
      }),
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/password/change',
    operationId: 'changePassword',
    admits: ['password'],
    summary: 'Replace the password of the account',
    description: 'Every other session of the account ends.',
    body: { schema: z.object({ password: secret }), example },
    answers: { 204: empty('It is replaced.') },
    refusals: refusals('PASSWORD_NOT_SET', 'PASSWORD_REFUSED', 'insufficient_user_authentication'),
    handle: ({ caller, body, request }) =>
      changeOwnPassword(deps.own, {
        caller,
        ...body,
        challenge: challengeOf(request),
        origin: originOf(request),
      }),
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/password/remove',
    operationId: 'removePassword',
    summary: 'Remove the password of the account',
    description: 'Every other session of the account ends. The last means of signing in cannot be removed.',
    answers: { 204: empty('It is removed.') },
    refusals: refusals('PASSWORD_NOT_SET', 'LAST_AUTH_METHOD', 'insufficient_user_authentication'),
    handle: ({ caller, request }) =>
      removeOwnPassword(deps.own, { caller, challenge: challengeOf(request), origin: originOf(request) }),
  });
}

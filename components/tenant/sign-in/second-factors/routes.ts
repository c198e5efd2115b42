import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { doneSchema, unstored } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import { challengeHeaders, challengeOf } from '../challenge/gate.ts';
import {
  beginEmailCodes,
  beginPhone,
  type ChannelDeps,
  disableCodes,
  enableEmailCodes,
  enableSmsCodes,
  verifyPhone,
} from './channels.ts';
import { findTotpState, removeTotp, setUpTotp, verifyTotp } from './totp.ts';

const tag = 'Second factors';
const code = z.string().trim().min(1).max(16);
const codeBody = { schema: z.object({ code }), example: { code: '123456' } };
const person = { tag, policy: 'RequirePlatformUser', rateLimit: 'PlatformAuth' } as const;

const setupSchema = z
  .object({
    secret: z.string().describe('20 bytes in base32.'),
    qrUri: z.string(),
    qrCode: z.array(z.string()).describe('Rows of the QR code of `qrUri`; 1 is a dark module.'),
    backupCodes: z
      .array(z.string())
      .describe('Each replaces a code of the app once; they are not shown again.'),
  })
  .meta({ id: 'TotpSetup' });

const stateSchema = z
  .object({
    isEnabled: z.boolean(),
    verifiedAt: z.string().nullable(),
    message: z.string(),
    backupCodesRemaining: z.int(),
  })
  .meta({ id: 'TotpStatus' });

export function mountSecondFactors(app: App, deps: ChannelDeps): void {
  mountTotp(app, deps);
  mountTotpState(app, deps);
  mountEmailCodes(app, deps);
  mountSmsCodes(app, deps);
}

function mountTotp(app: App, deps: ChannelDeps): void {
  addRoute(app, {
    ...person,
    method: 'POST',
    path: '/api/totp/setup',
    operationId: 'startTotpSetup',
    summary: 'Begin to add an authenticator app',
    answers: { 200: json('What the app needs.', setupSchema) },
    refusals: refusals('TOTP_ALREADY_ENABLED'),
    noStore: true,
    handle: async ({ caller }) => unstored(await setUpTotp(deps, caller)),
  });
  addRoute(app, {
    ...person,
    method: 'POST',
    path: '/api/totp/verify',
    operationId: 'verifyTotpSetup',
    summary: 'Add the authenticator app with its first code',
    body: codeBody,
    answers: { 200: json('It is added.', doneSchema) },
    refusals: refusals('TOTP_ALREADY_ENABLED', 'TOTP_NOT_SET_UP', 'WRONG_CODE'),
    handle: async ({ caller, body, request }) => {
      const challenge = challengeOf(request);
      await verifyTotp(deps, { caller, code: body.code, challenge, origin: originOf(request) });
      return { success: true, message: 'The authenticator app is added.' };
    },
  });
}

function mountTotpState(app: App, deps: ChannelDeps): void {
  addRoute(app, {
    tag,
    policy: 'RequirePlatformUser',
    rateLimit: 'Api',
    method: 'GET',
    path: '/api/totp/status',
    operationId: 'getTotpStatus',
    summary: 'Whether the account has an authenticator app',
    answers: { 200: json('The status.', stateSchema) },
    refusals: [],
    noStore: true,
    handle: async ({ caller }) => {
      const { verifiedAtMs, ...state } = await findTotpState(deps.db.read, requirePerson(caller));
      const message = state.isEnabled ? 'An authenticator app is added.' : 'No authenticator app is added.';
      return {
        ...state,
        verifiedAt: verifiedAtMs === undefined ? null : apiTimestamp(verifiedAtMs),
        message,
      };
    },
  });
  addRoute(app, {
    ...person,
    method: 'DELETE',
    path: '/api/totp',
    operationId: 'deleteTotp',
    summary: 'Remove the authenticator app and its backup codes',
    headers: challengeHeaders,
    answers: {
      200: json(
        'It is removed.',
        z.object({ isEnabled: z.boolean(), message: z.string() }).meta({ id: 'TotpEnded' }),
      ),
    },
    refusals: refusals('insufficient_user_authentication'),
    handle: async ({ caller, request }) => {
      await removeTotp(deps, { caller, challenge: challengeOf(request), origin: originOf(request) });
      return { isEnabled: false, message: 'The authenticator app is removed.' };
    },
  });
}

function mountEmailCodes(app: App, deps: ChannelDeps): void {
  addRoute(app, {
    ...person,
    method: 'POST',
    path: '/api/me/2fa/email/enable',
    operationId: 'startEmailCodes',
    summary: 'Have a code sent that switches codes by e-mail on',
    answers: { 202: empty('A code is on its way.') },
    refusals: refusals('EMAIL_NOT_USABLE', 'RATE_LIMITED'),
    handle: ({ caller }) => beginEmailCodes(deps, caller),
  });
  addRoute(app, {
    ...person,
    method: 'POST',
    path: '/api/me/2fa/email/verify',
    operationId: 'verifyEmailCodes',
    summary: 'Switch codes by e-mail on',
    body: codeBody,
    answers: { 204: empty('They are on.') },
    refusals: refusals('WRONG_CODE', 'CODE_EXPIRED', 'RATE_LIMITED'),
    handle: ({ caller, body, request }) => {
      const challenge = challengeOf(request);
      return enableEmailCodes(deps, { caller, code: body.code, challenge, origin: originOf(request) });
    },
  });
  for (const method of ['email', 'sms'] as const) {
    addRoute(app, {
      ...person,
      method: 'DELETE',
      path: `/api/me/2fa/${method}`,
      operationId: method === 'email' ? 'disableEmailCodes' : 'disableSmsCodes',
      summary: `Switch codes by ${method === 'email' ? 'e-mail' : 'text message'} off`,
      headers: challengeHeaders,
      answers: { 204: empty('They are off.') },
      refusals: refusals('insufficient_user_authentication'),
      handle: ({ caller, request }) =>
        disableCodes(deps, { caller, challenge: challengeOf(request), origin: originOf(request) }, method),
    });
  }
}

function mountSmsCodes(app: App, deps: ChannelDeps): void {
  addRoute(app, {
    ...person,
    method: 'POST',
    path: '/api/me/2fa/sms/phone',
    operationId: 'submitPhone',
    summary: 'Have a code sent to a telephone number',
    body: {
      schema: z.object({ phone: z.string().regex(/^\+[1-9]\d{7,14}$/, 'expected + and 8 to 15 digits') }),
      example: { phone: '+4917012345678' },
    },
    answers: { 202: empty('A code is on its way.') },
    refusals: refusals('SMS_UNAVAILABLE', 'RATE_LIMITED'),
    handle: ({ caller, body }) => beginPhone(deps, caller, body.phone),
  });
  addRoute(app, {
    ...person,
    method: 'POST',
    path: '/api/me/2fa/sms/phone/verify',
    operationId: 'verifyPhone',
    summary: 'Confirm the telephone number',
    body: codeBody,
    answers: { 204: empty('It is confirmed.') },
    refusals: refusals('SMS_UNAVAILABLE', 'WRONG_CODE', 'CODE_EXPIRED', 'RATE_LIMITED'),
    handle: ({ caller, body }) => verifyPhone(deps, caller, body.code),
  });
  addRoute(app, {
    ...person,
    method: 'POST',
    path: '/api/me/2fa/sms/enable',
    operationId: 'startSmsCodes',
    summary: 'Switch codes by text message on',
    answers: { 204: empty('They are on.') },
    refusals: refusals('SMS_UNAVAILABLE', 'PHONE_NOT_VERIFIED'),
    handle: ({ caller, request }) =>
      enableSmsCodes(deps, { caller, challenge: challengeOf(request), origin: originOf(request) }),
  });
}

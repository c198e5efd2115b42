import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, addRoute, answer, empty, json } from '#kit/http/http.ts';
import { publicOrganizationRefusals, refusal, refusals } from '../../errors.ts';
import { findAccount } from '../../people/accounts/store.ts';
import { unstored } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import { tier } from '../../requests/tier.ts';
import { presentTokens, tokenSchema } from '../../tokens/sessions/token-response.ts';
import { challengeHeaders, challengeOf } from '../challenge/gate.ts';
import { beginEnrolment, finishEnrolment, MAX_PASSKEYS, removePasskey } from './enrol.ts';
import { assertionSchema, attestationSchema, transactionId } from './schemas.ts';
import {
  beginSecondStep,
  beginSignIn,
  beginSignUp,
  finishSecondStep,
  finishSignIn,
  finishSignUp,
  type PasskeySignInDeps,
  type SignedIn,
} from './sign-in.ts';
import { type Signals, signalsOf } from './signals.ts';
import { listPasskeys, type Passkey } from './store.ts';

const tag = 'Passkeys';
const displayName = z.string().trim().pipe(readableName.max(64));
const loginToken = z.string().min(1).max(256);
const exampleToken = 'b2theSx4c0J2S1d0bWpVdjJvWmQ5d1lGcmJ0Q3hQaGE';

const optionsSchema = z
  .object({
    transaction_id: z.string(),
    options: z.looseObject({ challenge: z.string() }).describe('WebAuthn Level 3, 5.1.9 and 5.1.10.'),
  })
  .meta({ id: 'PasskeyOptions' });

export const passkeySchema = z
  .object({
    id: z.string(),
    display_name: z.string(),
    device_type: z.string(),
    status: z.string(),
    disabled_reason: z.string().nullable(),
    created_at: z.string(),
    last_used_at: z.string().nullable(),
  })
  .meta({ id: 'Passkey' });

/** What the page gives to the signal methods of WebAuthn Level 3, 5.1.10. */
const signalSchema = z
  .object({
    rp_id: z.string().nullable(),
    user_id: z.string().describe('The user handle, base64url.'),
    name: z.string(),
    display_name: z.string(),
    all_accepted_credential_ids: z.array(z.string()).describe('base64url; disabled passkeys are left out.'),
  })
  .meta({ id: 'PasskeySignals' });

const confirmedSchema = tokenSchema.extend({ signals: signalSchema }).meta({ id: 'PasskeyConfirmation' });
const signedInSchema = confirmedSchema.extend({ is_new_user: z.boolean() }).meta({ id: 'PasskeySession' });

/** An attestation with a chain of certificates has a few KiB. */
const bodyLimitBytes = 65_536;

const exampleCredential = { id: 'AQ', rawId: 'AQ', type: 'public-key' as const };
const attested = {
  schema: z.object({ transaction_id: transactionId, attestation_response: attestationSchema }),
  example: {
    transaction_id: exampleToken,
    attestation_response: {
      ...exampleCredential,
      response: { clientDataJSON: 'e30', attestationObject: 'oA' },
    },
  },
};
const exampleAssertion = {
  ...exampleCredential,
  response: { clientDataJSON: 'e30', authenticatorData: 'AA', signature: 'AA', userHandle: 'AA' },
};

function presentOptions(begun: { readonly transactionId: string; readonly options: object }) {
  const options = begun.options as { challenge: string } & Record<string, unknown>;
  return { transaction_id: begun.transactionId, options };
}

export function presentPasskey(passkey: Passkey): z.output<typeof passkeySchema> {
  return {
    id: passkey.id,
    display_name: passkey.displayName,
    device_type: passkey.deviceType,
    status: passkey.status,
    disabled_reason: passkey.disabledReason ?? null,
    created_at: apiTimestamp(passkey.createdAtMs),
    last_used_at: passkey.lastUsedAtMs === undefined ? null : apiTimestamp(passkey.lastUsedAtMs),
  };
}

function presentSignals(signals: Signals): z.output<typeof signalSchema> {
  return {
    rp_id: signals.rpId ?? null,
    user_id: signals.userId,
    name: signals.name,
    display_name: signals.displayName,
    all_accepted_credential_ids: [...signals.acceptedIds],
  };
}

function presentSignedIn({ tokens, signals }: SignedIn): z.output<typeof confirmedSchema> {
  return { ...presentTokens(tokens), signals: presentSignals(signals) };
}

export function mountPasskeys(app: App, deps: PasskeySignInDeps): void {
  mountEnrolment(app, deps, {
    path: '/api/passkey/register',
    ids: ['startPasskeyEnrolment', 'registerPasskey'],
  });
  mountEnrolment(app, deps, {
    path: '/api/auth/public/passkey/add',
    ids: ['startOwnPasskey', 'addOwnPasskey'],
  });
  mountOwn(app, deps);
  mountSignUp(app, deps);
  mountSignIn(app, deps);
  mountSecondStep(app, deps);
}

interface EnrolmentRoutes {
  readonly path: string;
  readonly ids: readonly [string, string];
}

function mountEnrolment(app: App, deps: PasskeySignInDeps, { path, ids }: EnrolmentRoutes): void {
  const route = { method: 'POST', tag, policy: 'RequirePlatformUser', rateLimit: 'PlatformAuth' } as const;
  addRoute(app, {
    ...route,
    path: `${path}/options`,
    operationId: ids[0],
    summary: 'Begin to add a passkey to the account',
    body: { schema: z.object({ display_name: displayName }), example: { display_name: 'Laptop' } },
    answers: { 200: json('Options for navigator.credentials.create.', optionsSchema) },
    refusals: refusals('PASSKEYS_UNAVAILABLE', 'TOO_MANY_PASSKEYS', 'SESSION_ENDED'),
    noStore: true,
    handle: async ({ caller, body }) => presentOptions(await beginEnrolment(deps, caller, body.display_name)),
  });
  addRoute(app, {
    ...route,
    path: `${path}/verify`,
    operationId: ids[1],
    summary: 'Add the passkey',
    body: attested,
    bodyLimitBytes,
    answers: { 201: json('It is added.', passkeySchema) },
    refusals: refusals(
      'INVALID_ATTESTATION',
      'KNOWN_CREDENTIAL',
      'TOO_MANY_PASSKEYS',
      'PASSKEYS_UNAVAILABLE',
      'SESSION_ENDED',
    ),
    handle: async ({ caller, body, request }) => {
      const { transaction_id, attestation_response: response } = body;
      const enrolment = { caller, transactionId: transaction_id, response, origin: originOf(request) };
      return answer(201, presentPasskey(await finishEnrolment(deps, enrolment)));
    },
  });
}

function mountOwn(app: App, deps: PasskeySignInDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/passkey/credentials',
    operationId: 'listPasskeys',
    tag,
    summary: 'The passkeys of the account',
    policy: 'RequirePlatformUser',
    rateLimit: 'Api',
    answers: {
      200: json(
        'The passkeys.',
        signalSchema
          .extend({ credentials: z.array(passkeySchema), max_credentials: z.int() })
          .meta({ id: 'PasskeyList' }),
      ),
    },
    refusals: refusals('SESSION_ENDED'),
    noStore: true,
    handle: async ({ caller }) => {
      const accountId = requirePerson(caller);
      const account = await findAccount(deps.db.read, accountId);
      if (account === undefined) throw refusal('SESSION_ENDED');
      const passkeys = await listPasskeys(deps.db.read, accountId);
      return {
        credentials: passkeys.map(presentPasskey),
        max_credentials: MAX_PASSKEYS,
        ...presentSignals(signalsOf(deps.party, account, passkeys)),
      };
    },
  });
  addRoute(app, {
    method: 'DELETE',
    path: '/api/passkey/credentials/:id',
    operationId: 'deletePasskey',
    tag,
    summary: 'Remove a passkey of the account',
    policy: 'RequirePlatformUser',
    rateLimit: 'PlatformAuth',
    params: z.object({ id: z.uuid() }),
    headers: challengeHeaders,
    answers: { 204: empty('It is removed.') },
    refusals: refusals('PASSKEY_NOT_FOUND', 'LAST_AUTH_METHOD', 'insufficient_user_authentication'),
    handle: ({ caller, params, request }) =>
      removePasskey(deps, {
        caller,
        passkeyId: params.id,
        challenge: challengeOf(request),
        origin: originOf(request),
      }),
  });
}

function mountSignUp(app: App, deps: PasskeySignInDeps): void {
  const closed = [...publicOrganizationRefusals('PUBLIC_ORG_DISABLED'), ...refusals('REGISTRATION_CLOSED')];
  const route = {
    method: 'POST',
    tag,
    policy: 'Anonymous',
    rateLimit: 'PlatformAuth',
    noStore: true,
  } as const;
  addRoute(app, {
    ...route,
    path: '/api/auth/public/passkey/register/options',
    operationId: 'startPasskeyRegistration',
    summary: 'Begin to register with a passkey alone',
    body: {
      schema: z.object({
        display_name: displayName,
        email: z.string().trim().max(254).pipe(z.email()).optional(),
      }),
      example: { display_name: 'Ada' },
    },
    answers: { 200: json('Options for navigator.credentials.create.', optionsSchema) },
    refusals: [...closed, ...refusals('PASSKEYS_UNAVAILABLE')],
    handle: async ({ body }) =>
      presentOptions(await beginSignUp(deps, { displayName: body.display_name, email: body.email })),
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/public/passkey/register/verify',
    operationId: 'registerByPasskey',
    summary: 'Register with a passkey alone',
    body: attested,
    bodyLimitBytes,
    answers: { 200: json('The tokens.', signedInSchema) },
    refusals: [
      ...closed,
      ...refusals('INVALID_ATTESTATION', 'KNOWN_CREDENTIAL', 'ADDRESS_TAKEN', 'PASSKEYS_UNAVAILABLE'),
    ],
    handle: async ({ body, request }) => {
      const { transaction_id, attestation_response: response } = body;
      const answered = { transactionId: transaction_id, response, origin: originOf(request) };
      return unstored({ ...presentSignedIn(await finishSignUp(deps, answered)), is_new_user: true });
    },
  });
}

function mountSignIn(app: App, deps: PasskeySignInDeps): void {
  const route = {
    method: 'POST',
    tag,
    policy: 'Anonymous',
    rateLimit: 'Authentication',
    noStore: true,
  } as const;
  addRoute(app, {
    ...route,
    path: '/api/auth/passkey/assertion/options',
    operationId: 'startPasskeySignIn',
    summary: 'Begin a sign-in by passkey',
    description: 'An address is ignored: the answer would tell which passkeys it has.',
    body: { schema: z.object({ email: z.string().max(254).optional() }), example: {} },
    answers: { 200: json('Options for navigator.credentials.get.', optionsSchema) },
    refusals: refusals('PASSKEYS_UNAVAILABLE'),
    handle: async () => presentOptions(await beginSignIn(deps)),
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/passkey/assertion/verify',
    operationId: 'verifyPasskeySignIn',
    summary: 'Sign in by passkey',
    body: {
      schema: z.object({
        transaction_id: transactionId,
        assertion_response: assertionSchema,
        tier: tier.optional(),
      }),
      example: { transaction_id: exampleToken, assertion_response: exampleAssertion },
    },
    bodyLimitBytes,
    answers: { 200: json('The tokens.', signedInSchema) },
    refusals: refusals('UNKNOWN_CREDENTIAL', 'INVALID_ASSERTION', 'PASSKEYS_UNAVAILABLE'),
    handle: async ({ body, request }) => {
      const { transaction_id, assertion_response: response } = body;
      const answered = {
        transactionId: transaction_id,
        response,
        tier: body.tier,
        origin: originOf(request),
      };
      return unstored({ ...presentSignedIn(await finishSignIn(deps, answered)), is_new_user: false });
    },
  });
}

function mountSecondStep(app: App, deps: PasskeySignInDeps): void {
  const route = {
    method: 'POST',
    tag,
    policy: 'Anonymous',
    rateLimit: 'TotpValidate',
    noStore: true,
  } as const;
  addRoute(app, {
    ...route,
    path: '/api/auth/verify-passkey/options',
    operationId: 'startPasskeyConfirmation',
    summary: 'Begin to complete a sign-in by passkey',
    body: { schema: z.object({ login_token: loginToken }), example: { login_token: exampleToken } },
    answers: { 200: json('Options for navigator.credentials.get.', optionsSchema) },
    refusals: refusals('INVALID_LOGIN_TOKEN', 'FACTOR_NOT_ENABLED', 'PASSKEYS_UNAVAILABLE'),
    handle: async ({ body }) => presentOptions(await beginSecondStep(deps, body.login_token)),
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/verify-passkey',
    operationId: 'verifyPasskeyConfirmation',
    summary: 'Complete a sign-in by passkey',
    body: {
      schema: z.object({
        login_token: loginToken,
        transaction_id: transactionId,
        assertion_response: assertionSchema,
        tier: tier.optional(),
      }),
      example: {
        login_token: exampleToken,
        transaction_id: exampleToken,
        assertion_response: exampleAssertion,
      },
    },
    bodyLimitBytes,
    answers: { 200: json('The tokens.', confirmedSchema) },
    refusals: refusals(
      'INVALID_LOGIN_TOKEN',
      'UNKNOWN_CREDENTIAL',
      'INVALID_ASSERTION',
      'PASSKEYS_UNAVAILABLE',
    ),
    handle: async ({ body, request }) => {
      const { login_token, transaction_id, assertion_response: response } = body;
      const origin = originOf(request);
      const answered = {
        loginToken: login_token,
        transactionId: transaction_id,
        response,
        tier: body.tier,
        origin,
      };
      return unstored(presentSignedIn(await finishSecondStep(deps, answered)));
    },
  });
}

import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import { originOf } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import { challengeHeaders, challengeOf } from '../../sign-in/challenge/gate.ts';
import { floorOf, type TargetKind } from '../../sign-in/challenge/prove.ts';
import { passkeySchema, presentPasskey } from '../../sign-in/passkeys/routes.ts';
import { listPasskeys } from '../../sign-in/passkeys/store.ts';
import { findFactors } from '../../sign-in/second-factors/store.ts';
import { findTotpState } from '../../sign-in/second-factors/totp.ts';
import { endTokens } from '../../tokens/sessions/end-tokens.ts';
import { countFirstFactors, type Means } from '../means/means.ts';
import { findMeans } from '../means/store.ts';
import { type ResetFactorsDeps, resetFactors } from './reset-factors.ts';
import { findOwnAccount, listSessions, listSocialLinks, type SocialLink } from './store.ts';

const tag = 'Account security';
const tiers = z.enum(['Basic', 'Strong']);
const time = z.string().nullable();
const graded = { canRemove: z.boolean(), assuranceTier: tiers, requiredProofTier: tiers };

const methodsSchema = z
  .object({
    email: z.string().nullable(),
    emailVerified: z.boolean(),
    password: z.object({ isSet: z.boolean(), lastChangedAt: time, ...graded }),
    socials: z.array(
      z.object({
        linkId: z.string(),
        provider: z.string(),
        email: z.string().nullable(),
        displayName: z.string().nullable(),
        linkedAt: z.string(),
        lastUsedAt: time,
        ...graded,
      }),
    ),
    passkeys: z.array(
      z.object({
        id: z.string(),
        displayName: z.string(),
        deviceType: z.string(),
        status: z.string(),
        disabledReason: z.string().nullable(),
        createdAt: z.string(),
        lastUsedAt: time,
        ...graded,
      }),
    ),
    totp: z.object({ isEnabled: z.boolean(), verifiedAt: time, backupCodesRemaining: z.int() }),
    emailOtpEnabled: z.boolean(),
    smsAvailable: z.boolean(),
    smsOtpEnabled: z.boolean(),
  })
  .meta({ id: 'AuthMethods' });

const sessionSchema = z
  .object({
    id: z.string(),
    organizationId: z.string(),
    tier: z.string(),
    methods: z.array(z.string()).describe('By RFC 8176.'),
    createdAt: z.string(),
    lastUsedAt: z.string(),
    expiresAt: z.string(),
    isCurrent: z.boolean(),
  })
  .meta({ id: 'OwnSession' });

const at = (ms: number | undefined) => (ms === undefined ? null : apiTimestamp(ms));

export function mountAccount(app: App, deps: ResetFactorsDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/me/auth-methods',
    operationId: 'getAuthMethods',
    tag,
    summary: 'The ways in which the account can sign in',
    policy: 'RequirePlatformUser',
    rateLimit: 'Api',
    answers: { 200: json('The methods.', methodsSchema) },
    refusals: [],
    noStore: true,
    handle: ({ caller }) => readMethods(deps, requirePerson(caller)),
  });
  mountPublicMethods(app, deps);
  mountSessions(app, deps);
  addRoute(app, {
    method: 'POST',
    path: '/api/platform/users/:platformUserId/reset-factors',
    operationId: 'recoverFactors',
    tag,
    summary: 'Remove the second factors of a person who has lost them',
    policy: 'RequireSystemAdmin',
    rateLimit: 'Strict',
    params: z.object({ platformUserId: identifier }),
    headers: challengeHeaders,
    answers: { 204: empty('They are removed, and every session of the person has ended.') },
    refusals: refusals('USER_NOT_FOUND', 'insufficient_user_authentication'),
    handle: ({ caller, params, request }) =>
      resetFactors(deps, {
        caller,
        challenge: challengeOf(request),
        platformUserId: params.platformUserId,
        origin: originOf(request),
      }),
  });
}

const linkSchema = z
  .object({
    linkId: z.string(),
    provider: z.string(),
    email: z.string().nullable(),
    displayName: z.string().nullable(),
    linkedAt: z.string(),
    lastUsedAt: time,
  })
  .meta({ id: 'SocialLink' });

function presentLink(link: SocialLink): z.output<typeof linkSchema> {
  const { id: linkId, provider, email = null, displayName = null, linkedAtMs, lastUsedAtMs } = link;
  const linkedAt = apiTimestamp(linkedAtMs);
  return { linkId, provider, email, displayName, linkedAt, lastUsedAt: at(lastUsedAtMs) };
}

function mountPublicMethods(app: App, deps: ResetFactorsDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/auth/public/methods',
    operationId: 'listPublicMethods',
    tag,
    summary: 'Passkeys and social connections of the account',
    policy: 'RequirePlatformUser',
    rateLimit: 'Api',
    answers: {
      200: json(
        'They.',
        z
          .object({ passkeys: z.array(passkeySchema), socialLinks: z.array(linkSchema) })
          .meta({ id: 'PublicMethods' }),
      ),
    },
    refusals: [],
    noStore: true,
    handle: async ({ caller }) => {
      const accountId = requirePerson(caller);
      const passkeys = await listPasskeys(deps.db.read, accountId);
      const links = await listSocialLinks(deps.db.read, accountId);
      return { passkeys: passkeys.map(presentPasskey), socialLinks: links.map(presentLink) };
    },
  });
}

/** What removing a method takes. */
function gradeOf(means: Means, target: TargetKind, isStrong: boolean) {
  const operation = target === 'Password' ? 'RemovePassword' : 'RemoveAuthMethod';
  const floor = floorOf({ operation, target }, means);
  return {
    canRemove: countFirstFactors(means) > 1,
    assuranceTier: isStrong ? ('Strong' as const) : ('Basic' as const),
    requiredProofTier: floor === 'strong' ? ('Strong' as const) : ('Basic' as const),
  };
}

async function readMethods(
  deps: ResetFactorsDeps,
  accountId: string,
): Promise<z.output<typeof methodsSchema>> {
  const { read } = deps.db;
  const account = await findOwnAccount(read, accountId);
  const means = await findMeans(read, accountId);
  const { verifiedAtMs, ...totp } = await findTotpState(read, accountId);
  const { emailCodes, smsCodes } = await findFactors(read, accountId);
  const [links, passkeys] = [await listSocialLinks(read, accountId), await listPasskeys(read, accountId)];
  const { hasPassword: isSet } = means;
  const password = gradeOf(means, 'Password', false);
  return {
    email: account?.email ?? null,
    emailVerified: account?.emailVerified ?? false,
    password: {
      isSet,
      lastChangedAt: at(account?.passwordChangedAtMs),
      ...password,
      canRemove: isSet && password.canRemove,
    },
    socials: links.map((link) => ({ ...presentLink(link), ...gradeOf(means, 'Social', false) })),
    passkeys: passkeys.map((passkey) => {
      const grade = gradeOf(means, 'Passkey', true);
      return {
        id: passkey.id,
        displayName: passkey.displayName,
        deviceType: passkey.deviceType,
        status: passkey.status,
        disabledReason: passkey.disabledReason ?? null,
        createdAt: apiTimestamp(passkey.createdAtMs),
        lastUsedAt: at(passkey.lastUsedAtMs),
        ...grade,
        canRemove: grade.canRemove || passkey.status !== 'Active',
      };
    }),
    totp: { ...totp, verifiedAt: at(verifiedAtMs) },
    emailOtpEnabled: emailCodes,
    smsAvailable: deps.messages.canSendTexts,
    smsOtpEnabled: smsCodes,
  };
}

function mountSessions(app: App, deps: ResetFactorsDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/me/sessions',
    operationId: 'listOwnSessions',
    tag,
    summary: 'The sessions of the account',
    policy: 'RequirePlatformUser',
    rateLimit: 'Api',
    answers: {
      200: json(
        'The sessions, the newest first.',
        z.object({ sessions: z.array(sessionSchema) }).meta({ id: 'OwnSessions' }),
      ),
    },
    refusals: [],
    noStore: true,
    handle: async ({ caller }) => {
      const sessions = await listSessions(deps.db.read, requirePerson(caller), deps.clock.nowMs());
      return {
        sessions: sessions.map((session) => ({
          id: session.id,
          organizationId: session.organizationId,
          tier: session.tier,
          methods: [...session.methods],
          createdAt: apiTimestamp(session.createdAtMs),
          lastUsedAt: apiTimestamp(session.lastUsedAtMs),
          expiresAt: apiTimestamp(session.expiresAtMs),
          isCurrent: session.id === caller.sessionId,
        })),
      };
    },
  });
  addRoute(app, {
    method: 'DELETE',
    path: '/api/me/sessions/:id',
    operationId: 'deleteOwnSession',
    tag,
    summary: 'End a session of the account',
    policy: 'RequirePlatformUser',
    rateLimit: 'Api',
    params: z.object({ id: identifier }),
    answers: { 204: empty('It has ended.') },
    refusals: refusals('SESSION_NOT_FOUND'),
    handle: async ({ caller, params: { id } }) => {
      const accountId = requirePerson(caller);
      await deps.db.transact(async (tx) => {
        const atMs = deps.clock.nowMs();
        const own = await listSessions(tx, accountId, atMs);
        if (!own.some((session) => session.id === id)) throw refusal('SESSION_NOT_FOUND');
        await endTokens(tx, { kind: 'family', key: id, families: { id }, reason: 'ended-by-owner', atMs });
      });
      deps.notify();
    },
  });
}

import { availableParallelism } from 'node:os';
import { isAppError } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import type { Caller } from '#core/identity/claims.ts';
import { listServices, type Service } from '#core/identity/services.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { CallerCheck, RevocationView } from '#kit/auth/auth.ts';
import { type Authenticator, createAuthenticator, createRevocationView, givenKeys } from '#kit/auth/auth.ts';
import type { Bus } from '#kit/bus/bus.ts';
import type { Database } from '#kit/db/db.ts';
import { createIdempotency, findAnswer, type Idempotency } from '#kit/db/idempotency.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createOutbound } from '#kit/outbound/outbound.ts';
import { createRateLimiter, type RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createMintLog, type MintLog } from './audit/log/mint-log.ts';
import { appendAudit } from './audit/log/store.ts';
import type { TenantConfig } from './config.ts';
import type { TenantDatabase } from './database/schema.ts';
import type { Deps } from './http.ts';
import { createProofWays } from './people/account/proof-ways.ts';
import { createMessages } from './people/messages/compose.ts';
import type { MessageQueue } from './people/messages/queue.ts';
import type { MessageSender } from './people/messages/sender.ts';
import { createAddressTokens } from './people/registration/tokens.ts';
import { createPrincipalDirectory, type PrincipalDirectory } from './platform/principals/directory.ts';
import type { MintDeps } from './platform/principals/mint.ts';
import { createOwnToken } from './platform/principals/own-token.ts';
import type { RevokePrincipalDeps } from './platform/principals/revoke.ts';
import { findPrincipal } from './platform/principals/store.ts';
import { seed } from './platform/seeding/seed.ts';
import { readServiceSecrets } from './platform/seeding/service-secrets.ts';
import { honourEarlierKeys } from './requests/earlier-keys.ts';
import { createChallengeTokens } from './sign-in/challenge/gate.ts';
import type { PendingLinkDeps } from './sign-in/federation/linking/pending.ts';
import { createReauthentication } from './sign-in/federation/linking/proof.ts';
import type { ProfileDeps } from './sign-in/federation/organization/profile.ts';
import { createSocialProviders } from './sign-in/federation/providers/providers.ts';
import { parseSocialSettings } from './sign-in/federation/providers/settings.ts';
import { createLinkPendingTokens, createOAuthStates } from './sign-in/federation/state.ts';
import { createUpstreamClient } from './sign-in/federation/upstream/upstream.ts';
import { createGuessCap } from './sign-in/lockout/guess-cap.ts';
import { createUnknownAddresses } from './sign-in/lockout/unknown-address.ts';
import { createCeremonies, relyingPartyOf } from './sign-in/passkeys/ceremony.ts';
import { passwordPolicyOf } from './sign-in/passwords/compose.ts';
import type { PasswordPolicy } from './sign-in/passwords/policy.ts';
import { createPasswords, type Passwords } from './sign-in/passwords/queue.ts';
import { createResetTokens } from './sign-in/recovery/recover.ts';
import { createChannelCodes } from './sign-in/second-factors/channels.ts';
import { createLoginTokens, type LoginTokens } from './sign-in/second-step/login-token.ts';
import { createSigningKeySet, type SigningKeySet } from './tokens/keys/key-set.ts';
import { createProtection, type Protection } from './tokens/keys/protection.ts';
import { logStart } from './tokens/revocations/revocation.ts';
import { listRevocations } from './tokens/revocations/store.ts';
import type { RevokeDeps } from './tokens/revoke.ts';
import { createTokenIssuer, type TokenIssuer } from './tokens/sessions/issue.ts';
import { createTrust } from './trust/compose.ts';
import type { OrganizationKeys } from './trust/keys/organization-keys.ts';
import { createTrustLists } from './trust/lists/compose.ts';

/** The dependencies of the tenant; tests provide their own database and bus. */
export interface Parts {
  readonly config: TenantConfig;
  readonly runtime: Runtime;
  readonly db: Database<TenantDatabase>;
  readonly bus: Bus;
  /** Connects the keys of organisations, for calls with the token of this service. */
  readonly connectKeys: (token: () => Promise<string>) => OrganizationKeys;
  /** Services that get a principal; those of the installation when absent. */
  readonly services?: readonly Service[];
}

/** The tenant without its listeners. */
export interface Tenant {
  readonly deps: Deps;
  readonly mint: MintDeps;
  readonly managePrincipals: RevokePrincipalDeps;
  readonly keys: SigningKeySet;
  readonly principals: PrincipalDirectory;
  readonly mintLog: MintLog;
  readonly limiter: RateLimiter;
  readonly authenticator: Authenticator & CallerCheck;
  readonly revocations: RevocationView;
  /** Wakes the readers of inbox events on every replica. */
  readonly notifyInboxes: () => void;
  /** The token of this service for its outgoing calls. */
  readonly ownToken: () => Promise<string>;
  readonly messages: MessageQueue;
  readonly messageSender: MessageSender;
}

const dayMs = 86_400_000;
/**
 * Leaves two of the four threads of the libuv pool to file and DNS operations, and a core to everything else: a flood of
 * sign-ins must not stop refreshes.
 */
const passwordQueue = { concurrent: Math.max(1, Math.min(2, availableParallelism() - 1)), waiting: 64 };
const revocationPageSize = 1_000;

/** Builds everything that needs the database and seeds it; opens no listener. */
export async function assembleTenant(parts: Parts): Promise<Tenant> {
  const { config, runtime, db, bus } = parts;
  const { clock, installation } = runtime;
  const protection = createProtection(config.CHANCERY_PROTECTION_KEY_FILE.reveal());
  const rotationMs = config.CHANCERY_SIGNING_KEY_ROTATION_DAYS * dayMs;
  const keys = await createSigningKeySet({ db, protection, clock, rotationMs });
  const passwords = await createPasswords(passwordQueue);
  await seed({ db, clock, passwords }, await seedOf(config, parts.services ?? listServices()));
  const revocations = localRevocations(parts);
  const tokenKeys = givenKeys(() => keys.jwks());
  const authenticator = createAuthenticator({ installation, keys: tokenKeys, revocations, clock });
  const issuer = createTokenIssuer({
    installation,
    clock,
    signingKey: () => keys.current(),
    serviceLifetimeSeconds: config.CHANCERY_SERVICE_TOKEN_LIFETIME_SECONDS,
    enforcesPasswordChange: config.CHANCERY_RATE_LIMIT_PROFILE === 'production',
  });
  // In a transaction, because it distinguishes an unavailable database from an internal error.
  const principals = createPrincipalDirectory(
    (clientId) => db.transact((tx) => findPrincipal(tx, clientId)),
    clock,
  );
  const mintLog = openMintLog(parts);
  const limiter = createRateLimiter({ profile: config.CHANCERY_RATE_LIMIT_PROFILE, clock });
  const notifyInboxes = () => bus.publish(SUBJECTS.tenantInboxes);
  const notifyPrincipals = () => bus.publish(SUBJECTS.tenantEvents);
  const sharedSecretsDisabled = config.ServiceAuth__DisableSharedSecrets;
  const mint: MintDeps = {
    db,
    clock,
    log: runtime.log,
    installation,
    principals,
    issuer,
    mintLog,
    sharedSecretsDisabled,
    takeToken: (clientId) => limiter.take('Token', clientId),
    findCaller: (token) => findCaller(authenticator, token),
  };
  const managePrincipals = {
    db,
    clock,
    principals,
    notify: notifyPrincipals,
    notifyRevocations: () => bus.publish(SUBJECTS.tenantRevocations),
  };
  const rotate = { ...managePrincipals, sharedSecretsDisabled };
  const messaging = createMessages({ ...parts, protection });
  const { messages } = messaging;
  const wiring = { parts, protection, messages, keys, passwords, issuer, authenticator, notifyInboxes };
  const ownToken = createOwnToken({ principals, issuer });
  const trust = createTrust(parts, parts.connectKeys(ownToken));
  const deps = { ...publicDeps(wiring), trust, internal: { mint, rotate, log: runtime.log } };
  return {
    deps,
    mint,
    managePrincipals,
    keys,
    principals,
    mintLog,
    limiter,
    authenticator,
    revocations,
    notifyInboxes,
    ownToken,
    ...messaging,
  };
}

function openMintLog({ runtime, db }: Parts): MintLog {
  return createMintLog({
    clock: runtime.clock,
    organizationId: SYSTEM_ORGANIZATION_ID,
    append: (events) => db.transact((tx) => appendAudit(tx, ...events)),
  });
}

interface Wiring {
  readonly parts: Parts;
  readonly protection: Protection;
  readonly messages: MessageQueue;
  readonly keys: SigningKeySet;
  readonly passwords: Passwords;
  readonly issuer: TokenIssuer;
  readonly authenticator: Authenticator;
  readonly notifyInboxes: () => void;
}

function publicDeps(wiring: Wiring): Omit<Deps, 'internal' | 'trust'> {
  const { parts, protection, issuer, passwords, notifyInboxes } = wiring;
  const { refreshKey } = protection;
  const { config, runtime, db, bus } = parts;
  const { clock, log, installation } = runtime;
  const notify = () => bus.publish(SUBJECTS.tenantRevocations);
  const signIn = {
    db,
    clock,
    passwords,
    guessCap: createGuessCap(db),
    findUnknown: createUnknownAddresses(protection.addressKey),
    lockoutSteps: config.CHANCERY_LOCKOUT_STEPS,
    loginTokens: createLoginTokens({ db, clock, protection }),
    issuer,
    refreshKey,
  };
  const findTokenCaller = (token: string) => findCaller(wiring.authenticator, token);
  const revoke: RevokeDeps = { db, clock, refreshKey, notify, findCaller: findTokenCaller };
  const passwordPolicy = passwordPolicyOf(config, parts.runtime);
  const grant = {
    signIn,
    refresh: { db, clock, issuer, refreshKey, notify, notifyInboxes },
    passwordGrantEnabled: config.CHANCERY_PASSWORD_GRANT_ENABLED,
  };
  return {
    metadata: { keys: wiring.keys, installation, baseUrl: config.CHANCERY_BASE_URL },
    pages: { baseUrl: config.CHANCERY_BASE_URL, returnToHosts: config.Auth__ReturnToAllowlist__Hosts },
    idempotency: createRequestKeys(parts),
    organizations: { db, clock },
    governance: { db, clock, notify },
    users: { db, clock, notify, notifyInboxes, passwords, passwordPolicy },
    audit: { db, clock },
    inbox: { db, clock, notify: notifyInboxes },
    signIn: { signIn, signOut: { db, clock, notify } },
    switching: { db, clock, issuer, refreshKey },
    tokens: { grant, revoke, log },
    trustLists: createTrustLists(parts),
    ...accountDeps(wiring, { notify, passwordPolicy, loginTokens: signIn.loginTokens }),
  };
}

interface Shared {
  readonly notify: () => void;
  readonly passwordPolicy: PasswordPolicy;
  readonly loginTokens: LoginTokens;
}

type AccountPart =
  | 'registration'
  | 'recovery'
  | 'secondStep'
  | 'passkeys'
  | 'challenge'
  | 'account'
  | 'identityProvider'
  | 'federation';

/** What people do with their own accounts: registration, addresses, passwords, ways in. */
function accountDeps(
  { parts, protection, messages, passwords, issuer, notifyInboxes }: Wiring,
  { notify, passwordPolicy, loginTokens }: Shared,
): Pick<Deps, AccountPart> {
  const { config, runtime, db } = parts;
  const { clock, installation } = runtime;
  const secrets = { db, clock, protection };
  const baseUrl = config.CHANCERY_BASE_URL;
  const tokens = createAddressTokens(secrets);
  const challenges = createChallengeTokens(secrets);
  const sessions = { issuer, refreshKey: protection.refreshKey };
  const common = { db, clock, passwords, passwordPolicy, messages, baseUrl, notify, notifyInboxes };
  const passkeys = {
    ...common,
    ...sessions,
    party: relyingPartyOf({
      baseUrl,
      installation,
      rpId: config.CHANCERY_PASSKEY_RP_ID,
      rpName: config.CHANCERY_PASSKEY_RP_NAME,
      origins: config.CHANCERY_PASSKEY_ORIGINS,
    }),
    ceremonies: createCeremonies(secrets),
    challenges,
    loginTokens,
    tokens,
  };
  const secondStep = {
    ...common,
    ...sessions,
    protection,
    installation,
    challenges,
    loginTokens,
    codes: createChannelCodes(secrets),
    lockoutSteps: config.CHANCERY_LOCKOUT_STEPS,
  };
  const federation = federate(parts, protection, {
    ...common,
    ...sessions,
    installation,
    challenges,
    loginTokens,
    tokens,
  });
  const ways = createProofWays({
    step: secondStep,
    passkeys,
    passwords,
    reauthentication: createReauthentication(federation),
  });
  return {
    registration: {
      register: { ...common, tokens },
      verify: { ...common, tokens, challenges, installation },
    },
    recovery: {
      recover: { ...common, resets: createResetTokens(secrets) },
      own: { ...common, challenges },
    },
    passkeys,
    secondStep,
    challenge: { ...common, challenges, ways },
    account: { ...secondStep, notify },
    identityProvider: federation.identityProvider,
    federation: { ...federation, ways },
  };
}

type FederationCommon = Omit<
  ProfileDeps & PendingLinkDeps,
  'client' | 'states' | 'pending' | 'providers' | 'identityProvider' | 'returnToHosts' | 'ways' | 'log'
>;

/** Sign-in by the providers of others. */
function federate(
  { config, runtime, db }: Parts,
  protection: Protection,
  common: FederationCommon,
): Omit<ProfileDeps & PendingLinkDeps, 'ways'> {
  const { clock, log } = runtime;
  const door = createOutbound({ allowed: config.CHANCERY_OUTBOUND_ALLOWED });
  const client = createUpstreamClient({ door, clock });
  const secrets = { db, clock, protection };
  const file = config.CHANCERY_SOCIAL_PROVIDERS_FILE?.text();
  const settings = file === undefined ? [] : (parseSocialSettings(file) ?? []);
  return {
    ...common,
    log,
    client,
    states: createOAuthStates(secrets),
    pending: createLinkPendingTokens(secrets),
    providers: createSocialProviders(settings, { door, clock }),
    identityProvider: { db, clock, log, protection, door, client },
    returnToHosts: config.Auth__ReturnToAllowlist__Hosts,
  };
}

async function seedOf(config: TenantConfig, services: readonly Service[]) {
  return {
    services,
    adminEmail: config.CHANCERY_ADMIN_EMAIL,
    adminPassword: config.CHANCERY_ADMIN_PASSWORD_FILE.text(),
    publicOrgEnabled: config.CHANCERY_PUBLIC_ORG_ENABLED,
    serviceSecrets: await readServiceSecrets(config.CHANCERY_SERVICE_SECRETS_DIR),
  };
}

/** The revocation view that every service has, here read from the local table. */
function localRevocations({ runtime, db, bus }: Parts): RevocationView {
  const { clock, log } = runtime;
  return createRevocationView({
    source: {
      list: (cursor) => {
        const query = { limit: revocationPageSize, nowMs: clock.nowMs() };
        return listRevocations(db.read, cursor ?? logStart, query);
      },
    },
    bus,
    clock,
    log,
  });
}

function createRequestKeys({ runtime, db }: Parts): Idempotency {
  const { clock, log } = runtime;
  return honourEarlierKeys(createIdempotency({ database: db, clock, log }), (request) =>
    findAnswer(db.read, request, clock.nowMs()),
  );
}

async function findCaller(authenticator: Authenticator, token: string): Promise<Caller | undefined> {
  try {
    return await authenticator.authenticate(token);
  } catch (error) {
    if (isAppError(error, 'unauthenticated')) return undefined;
    throw error;
  }
}

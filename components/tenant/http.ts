import type { Idempotency } from '#kit/db/idempotency.ts';
import type { App } from '#kit/http/http.ts';
import { type Hub, mountHub } from '#kit/hub/hub.ts';
import type { AuditDeps } from './audit/refusals.ts';
import { mountAudit } from './audit/routes.ts';
import type { CreateOrganizationDeps } from './organizations/create.ts';
import type { ProviderDeps } from './organizations/identity-provider/configure.ts';
import { mountIdentityProvider } from './organizations/identity-provider/routes.ts';
import { mountManaged } from './organizations/managed/routes.ts';
import { mountOrganizations } from './organizations/routes.ts';
import type { StatusDeps } from './organizations/status.ts';
import { mountPages, type PageDeps } from './pages/routes.ts';
import type { ResetFactorsDeps } from './people/account/reset-factors.ts';
import { mountAccount } from './people/account/routes.ts';
import { tenantHubPath } from './people/inbox/hub.ts';
import { type InboxDeps, mountInbox } from './people/inbox/routes.ts';
import { mountRegistration, type RegistrationRouteDeps } from './people/registration/routes.ts';
import { mountUsers, type UserDeps } from './people/users/routes.ts';
import { type InternalDeps, mountInternal } from './platform/principals/routes.ts';
import { mountPlatform } from './platform/routes.ts';
import { acceptSpellings } from './requests/spellings.ts';
import type { ProveDeps } from './sign-in/challenge/prove.ts';
import { mountChallenge } from './sign-in/challenge/routes.ts';
import type { PendingLinkDeps } from './sign-in/federation/linking/pending.ts';
import { mountLinking } from './sign-in/federation/linking/routes.ts';
import type { ProfileDeps } from './sign-in/federation/organization/profile.ts';
import { mountOrganizationSignIn } from './sign-in/federation/organization/routes.ts';
import { mountSocial } from './sign-in/federation/social/routes.ts';
import { mountPasskeys } from './sign-in/passkeys/routes.ts';
import type { PasskeySignInDeps } from './sign-in/passkeys/sign-in.ts';
import { mountRecovery, type RecoveryRouteDeps } from './sign-in/recovery/routes.ts';
import { mountSignIn, type SignInRouteDeps } from './sign-in/routes.ts';
import { mountSecondFactors } from './sign-in/second-factors/routes.ts';
import type { SecondStepDeps } from './sign-in/second-step/complete.ts';
import { mountSecondStep } from './sign-in/second-step/routes.ts';
import { mountSwitching } from './sign-in/switching/routes.ts';
import type { SwitchDeps } from './sign-in/switching/switch.ts';
import { type MetadataDeps, mountMetadata } from './tokens/metadata/routes.ts';
import { mountTokens, type TokenRouteDeps } from './tokens/routes.ts';
import { mountAuthority } from './trust/authority/routes.ts';
import { mountCertificates } from './trust/certificates/routes.ts';
import type { TrustDeps } from './trust/compose.ts';
import type { TrustListDeps } from './trust/lists/import-list.ts';
import { mountTrustLists } from './trust/lists/routes.ts';

export interface Deps {
  readonly metadata: MetadataDeps;
  readonly pages: PageDeps;
  /** Of the routes that take an Idempotency-Key. */
  readonly idempotency: Idempotency;
  readonly organizations: CreateOrganizationDeps;
  readonly governance: StatusDeps;
  readonly users: Omit<UserDeps, 'idempotency'>;
  readonly audit: AuditDeps;
  readonly inbox: InboxDeps;
  readonly signIn: SignInRouteDeps;
  readonly switching: SwitchDeps;
  readonly tokens: TokenRouteDeps;
  readonly registration: RegistrationRouteDeps;
  readonly recovery: RecoveryRouteDeps;
  readonly secondStep: SecondStepDeps;
  readonly passkeys: PasskeySignInDeps;
  readonly challenge: ProveDeps;
  readonly account: ResetFactorsDeps;
  readonly identityProvider: ProviderDeps;
  readonly federation: PendingLinkDeps & ProfileDeps;
  readonly trust: TrustDeps;
  readonly trustLists: TrustListDeps;
  readonly internal: InternalDeps;
}

/**
 * The routes of the mutual-TLS listener: those behind the gateway, with the hub, and those that only the operator may
 * call. `hub` is called by handlers only.
 */
export function mountRoutes(app: App, deps: Deps, hub: () => Hub): void {
  acceptSpellings(app);
  mountMetadata(app, deps.metadata);
  mountPages(app, deps.pages);
  const { idempotency } = deps;
  mountOrganizations(app, { ...deps.organizations, idempotency });
  mountPlatform(app, deps.governance);
  mountManaged(app, deps.governance);
  mountUsers(app, { ...deps.users, idempotency });
  mountAudit(app, deps.audit);
  mountInbox(app, deps.inbox);
  mountSignIn(app, deps.signIn);
  mountSwitching(app, deps.switching);
  mountTokens(app, deps.tokens);
  mountRegistration(app, deps.registration);
  mountRecovery(app, deps.recovery);
  mountSecondFactors(app, deps.secondStep);
  mountSecondStep(app, deps.secondStep);
  mountPasskeys(app, deps.passkeys);
  mountChallenge(app, deps.challenge);
  mountAccount(app, deps.account);
  mountIdentityProvider(app, deps.identityProvider);
  mountSocial(app, deps.federation);
  mountLinking(app, deps.federation);
  mountOrganizationSignIn(app, deps.federation);
  mountAuthority(app, deps.trust);
  mountCertificates(app, deps.trust);
  mountTrustLists(app, deps.trustLists);
  mountHub(app, tenantHubPath, hub);
}

/** The routes of the internal listener without TLS. */
export function mountInternalRoutes(app: App, deps: Deps): void {
  mountInternal(app, deps.internal);
}

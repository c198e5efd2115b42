import type { App } from '#kit/http/http.ts';
import { type Hub, mountHub } from '#kit/hub/hub.ts';
import type { DecryptDeps } from './encryption/encrypt.ts';
import { type FileDeps, mountFileRoutes } from './encryption/files/routes.ts';
import { mountEncryptionRoutes } from './encryption/routes.ts';
import type { GrantDeps } from './grants/grant.ts';
import { mountGrantRoutes } from './grants/routes.ts';
import type { IssuerKeyDeps } from './signing/issuer/issuer-key.ts';
import { mountIssuerKeyRoutes } from './signing/issuer/routes.ts';
import { mountSigningRoutes, type SigningRouteDeps } from './signing/routes.ts';
import { mountValidatorKeyRoutes, type ValidatorKeyDeps } from './system-signer/routes.ts';
import type { KeepDeps } from './wallets/credentials/keep.ts';
import { mountResolveRoute } from './wallets/credentials/resolve-routes.ts';
import { mountCredentialRoutes } from './wallets/credentials/routes.ts';
import { type HistoryDeps, mountHistoryRoutes } from './wallets/holder/history-routes.ts';
import type { HolderKeyDeps } from './wallets/holder/holder-key.ts';
import { mountHolderKeyRoutes } from './wallets/holder/key-routes.ts';
import { mountNoticeRoutes } from './wallets/holder/notice-routes.ts';
import { walletHubPath } from './wallets/hub/hub.ts';
import type { DeleteDeps } from './wallets/lifecycle/delete.ts';
import { mountLifecycleRoutes } from './wallets/lifecycle/routes.ts';
import { mountOrganizationKeyRoutes, type OrganizationKeyDeps } from './wallets/organization/routes.ts';
import { mountWalletRoutes, type WalletRouteDeps } from './wallets/routes.ts';
import type { OwnDeps } from './wallets/services/own.ts';
import { mountServiceWalletRoutes } from './wallets/services/routes.ts';

/** Dependencies of the route handlers; registering the routes uses none of them. */
export type WalletHttpDeps = WalletRouteDeps &
  SigningRouteDeps &
  DecryptDeps &
  GrantDeps &
  DeleteDeps &
  OrganizationKeyDeps &
  OwnDeps &
  ValidatorKeyDeps &
  HistoryDeps &
  HolderKeyDeps &
  IssuerKeyDeps &
  KeepDeps &
  FileDeps;

/** Mounts all routes; `hub` is called by handlers only. */
export function mountRoutes(app: App, deps: WalletHttpDeps, hub: () => Hub): void {
  mountWalletRoutes(app, deps);
  mountLifecycleRoutes(app, deps);
  mountOrganizationKeyRoutes(app, deps);
  mountSigningRoutes(app, deps);
  mountEncryptionRoutes(app, deps);
  mountGrantRoutes(app, deps);
  mountServiceWalletRoutes(app, deps);
  mountValidatorKeyRoutes(app, deps);
  mountNoticeRoutes(app, deps);
  mountHolderKeyRoutes(app, deps);
  mountHistoryRoutes(app, deps);
  mountCredentialRoutes(app, deps);
  mountResolveRoute(app, deps);
  mountIssuerKeyRoutes(app, deps);
  mountFileRoutes(app, deps);
  mountHub(app, walletHubPath, hub);
}

import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import { refusals, walletRefusals } from '../../errors.ts';
import {
  changeBody,
  operationIdUnder,
  presentWallet,
  WALLET_PREFIXES,
  type WalletPrefix,
  walletParams,
  walletSchema,
} from '../records/schemas.ts';
import { updateWallet } from './change.ts';
import { type DeleteDeps, deleteWallet } from './delete.ts';

export function mountLifecycleRoutes(app: App, deps: DeleteDeps): void {
  for (const prefix of WALLET_PREFIXES) mountUnder(app, deps, prefix);
}

const route = { tag: 'Wallets', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;

function mountUnder(app: App, deps: DeleteDeps, prefix: WalletPrefix): void {
  const path = `${prefix}/:id`;
  addRoute(app, {
    ...route,
    method: 'PATCH',
    path,
    operationId: operationIdUnder(prefix, 'updateWallet'),
    summary: 'Change the texts of a wallet, lock or unlock it',
    params: walletParams,
    body: { schema: changeBody, example: { status: 'Locked' } },
    answers: { 200: json('The wallet.', walletSchema) },
    refusals: [...walletRefusals, ...refusals('WALLET_DELETED', 'KEY_REVOKED')],
    handle: async ({ caller, params, body: { title, description, status } }) =>
      presentWallet(await updateWallet(deps, caller, params.id, { title, description, status })),
  });

  addRoute(app, {
    ...route,
    method: 'DELETE',
    path,
    operationId: operationIdUnder(prefix, 'deleteWallet'),
    summary: 'Erase the keys of a locked wallet',
    description:
      'The wallet must have been locked for the time that the installation sets. Its address and public keys stay. ' +
      'Only its mnemonic brings the keys back.',
    params: walletParams,
    answers: { 204: empty('The keys of the wallet do not exist.') },
    refusals: [...walletRefusals, ...refusals('WALLET_NOT_LOCKED', 'WALLET_LOCKED_TOO_RECENTLY')],
    handle: ({ caller, params }) => deleteWallet(deps, caller, params.id),
  });
}

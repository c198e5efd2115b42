import { type App, addRoute, answer, json, page, pageSchema, pageWindow, paging } from '#kit/http/http.ts';
import { refusals, walletRefusals } from '../errors.ts';
import { type AuthorityDeps, authorizeView, personOf } from '../grants/authority.ts';
import { type CreateDeps, type CreatedWallet, createWallet, recoverWallet } from './create.ts';
import {
  createBody,
  createdWalletSchema,
  operationIdUnder,
  presentWallet,
  recoverBody,
  WALLET_PREFIXES,
  type WalletPrefix,
  walletParams,
  walletSchema,
} from './records/schemas.ts';
import { getWallet, listVisible } from './records/store.ts';

export type WalletRouteDeps = CreateDeps & AuthorityDeps;

/** The BIP-39 test vector of zero entropy, which holds no value. */
const exampleMnemonic = `${'abandon '.repeat(11)}about`;

export function mountWalletRoutes(app: App, deps: WalletRouteDeps): void {
  for (const prefix of WALLET_PREFIXES) {
    mountWrites(app, deps, prefix);
    mountReads(app, deps, prefix);
  }
}

const route = { tag: 'Wallets', policy: 'RequireAuthenticated' } as const;
const creation = refusals('WALLET_EXISTS', 'PERSON_REQUIRED');

function mountWrites(app: App, deps: WalletRouteDeps, prefix: WalletPrefix): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: prefix,
    operationId: operationIdUnder(prefix, 'createWallet'),
    summary: 'Create a wallet',
    rateLimit: 'Api',
    body: { schema: createBody, example: { title: 'Signing wallet', keyType: 'ED25519' } },
    idempotency: 'handler',
    answers: { 201: json('The wallet, with its mnemonic.', createdWalletSchema) },
    refusals: [
      ...creation,
      ...refusals('ORGANIZATION_WALLET_EXISTS', 'ORGANIZATION_KEY_TYPE', 'KEY_GENERATION_BUSY'),
      ...refusals('WALLET_ACCESS_DENIED'),
    ],
    noStore: true,
    handle: async ({ caller, body, idempotencyKey }) => {
      const { description, organizationId, ...others } = body;
      const created = await createWallet(
        deps,
        caller,
        { ...others, description, organizationId },
        idempotencyKey,
      );
      return answer(201, presentCreated(created), {
        'idempotency-replayed': created.replayed ? 'true' : undefined,
      });
    },
  });

  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${prefix}/recover`,
    operationId: operationIdUnder(prefix, 'recoverWallet'),
    summary: 'Recover a wallet from its mnemonic',
    rateLimit: 'Strict',
    body: { schema: recoverBody, example: { keyType: 'ED25519', mnemonic: exampleMnemonic } },
    answers: {
      200: json('The wallet existed.', createdWalletSchema),
      201: json('The wallet is made again.', createdWalletSchema),
    },
    refusals: [
      ...creation,
      ...refusals('KEY_TYPE_NOT_RECOVERABLE', 'INVALID_MNEMONIC', 'WALLET_ACCESS_DENIED'),
      ...refusals('ORGANIZATION_WALLET_EXISTS'),
    ],
    handle: async ({ caller, body: { description, organizationId, ...others } }) => {
      const recovered = await recoverWallet(deps, caller, { ...others, description, organizationId });
      return answer(recovered.replayed ? 200 : 201, presentCreated(recovered));
    },
  });
}

function mountReads(app: App, deps: WalletRouteDeps, prefix: WalletPrefix): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: prefix,
    operationId: operationIdUnder(prefix, 'listWallets'),
    summary: 'Wallets that the caller owns, administers or was granted',
    rateLimit: 'Api',
    query: paging(),
    answers: { 200: json('A page of wallets.', pageSchema(walletSchema)) },
    refusals: refusals('PERSON_REQUIRED'),
    handle: async ({ caller, query }) => {
      const administrator = caller.roles.includes('Administrator');
      const view = {
        platformUserId: personOf(caller),
        organizationId: caller.organizationId,
        administeredOrganizationId: administrator ? caller.organizationId : undefined,
        nowMs: deps.clock.nowMs(),
      };
      const { wallets, totalCount } = await listVisible(deps.db.read, view, pageWindow(query));
      return page(wallets.map(presentWallet), query, totalCount);
    },
  });

  addRoute(app, {
    ...route,
    method: 'GET',
    path: `${prefix}/:id`,
    operationId: operationIdUnder(prefix, 'getWallet'),
    summary: 'One wallet',
    rateLimit: 'Api',
    params: walletParams,
    answers: { 200: json('The wallet.', walletSchema) },
    refusals: walletRefusals,
    handle: async ({ caller, params }) => {
      const wallet = await getWallet(deps.db.read, params.id);
      await authorizeView(deps, caller, wallet);
      return presentWallet(wallet);
    },
  });
}

function presentCreated({ wallet, mnemonic }: CreatedWallet) {
  return { ...presentWallet(wallet), ...(mnemonic === undefined ? {} : { mnemonic }) };
}

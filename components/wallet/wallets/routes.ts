import {
  type App,
  callerOf,
  idempotencyHeaders,
  page,
  pageSchema,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
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

const tags = ['Wallets'];

export function mountWalletRoutes(app: App, deps: WalletRouteDeps): void {
  for (const prefix of WALLET_PREFIXES) mountUnder(app, deps, prefix);
}

function mountUnder(app: App, deps: WalletRouteDeps, prefix: WalletPrefix): void {
  app.post(
    prefix,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'createWallet'),
        summary: 'Create a wallet',
        body: createBody,
        headers: idempotencyHeaders,
        response: { 201: createdWalletSchema },
      },
    },
    async (request, reply) => {
      const { description, organizationId, ...body } = request.body;
      const newWallet = { ...body, description, organizationId };
      const key = request.headers['idempotency-key'];
      const created = await createWallet(deps, callerOf(request), newWallet, key);
      if (created.replayed) reply.header('idempotency-replayed', 'true');
      return reply.code(201).header('cache-control', 'no-store').send(presentCreated(created));
    },
  );

  app.post(
    `${prefix}/recover`,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'recoverWallet'),
        summary: 'Recover a wallet from its mnemonic',
        body: recoverBody,
        response: { 200: createdWalletSchema, 201: createdWalletSchema },
      },
    },
    async (request, reply) => {
      const { description, ...body } = request.body;
      const recovered = await recoverWallet(deps, callerOf(request), { ...body, description });
      return reply.code(recovered.replayed ? 200 : 201).send(presentCreated(recovered));
    },
  );

  app.get(
    prefix,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'listWallets'),
        summary: 'Wallets that the caller owns, administers or was granted',
        querystring: paging(),
        response: { 200: pageSchema(walletSchema) },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const administrator = caller.roles.includes('Administrator');
      const view = {
        platformUserId: personOf(caller),
        administeredOrganizationId: administrator ? caller.organizationId : undefined,
        nowMs: deps.clock.nowMs(),
      };
      const { wallets, totalCount } = await listVisible(deps.db.read, view, pageWindow(request.query));
      const items = wallets.map(presentWallet);
      return { ...page(items, request.query, totalCount), items };
    },
  );

  app.get(
    `${prefix}/:id`,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: operationIdUnder(prefix, 'getWallet'),
        tags,
        summary: 'One wallet',
        params: walletParams,
        response: { 200: walletSchema },
      },
    },
    async (request) => {
      const wallet = await getWallet(deps.db.read, request.params.id);
      await authorizeView(deps, callerOf(request), wallet);
      return presentWallet(wallet);
    },
  );
}

function presentCreated({ wallet, mnemonic }: CreatedWallet) {
  return { ...presentWallet(wallet), ...(mnemonic === undefined ? {} : { mnemonic }) };
}

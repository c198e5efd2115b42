import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { algorithmOf } from '../records/wallet.ts';
import { isServiceWalletName, type OwnDeps, ownWallet } from './own.ts';

const name = z.string().refine(isServiceWalletName);

const serviceWalletSchema = z.object({
  name: z.string(),
  walletId: z.string(),
  walletAddress: z.string(),
  publicKey: z.string().describe('Base64, 32 bytes.'),
  algorithm: z.string(),
});

/** Wallets that the operator owns. The gateway does not route to them. */
export function mountServiceWalletRoutes(app: App, deps: OwnDeps): void {
  addRoute(app, {
    method: 'PUT',
    path: '/api/internal/service-wallets/:name',
    operationId: 'ensureServiceWallet',
    tag: 'Operator',
    summary: 'The wallet of the caller under a name, created when it does not exist',
    policy: 'RequireOperator',
    rateLimit: 'Api',
    params: z.object({ name }),
    answers: { 200: json('The wallet.', serviceWalletSchema) },
    refusals: [],
    handle: async ({ caller, params }) => {
      const wallet = await ownWallet(deps, caller, params.name);
      return {
        name: params.name,
        walletId: wallet.id,
        walletAddress: wallet.address,
        publicKey: encodeBase64(wallet.publicKey),
        algorithm: algorithmOf(wallet.keyType),
      };
    },
  });
}

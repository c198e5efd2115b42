import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { type App, callerOf } from '#kit/http/http.ts';
import { algorithmOf } from '../records/wallet.ts';
import { type OwnDeps, ownWallet } from './own.ts';

const name = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/);

/** Wallets that the operator owns. The gateway does not route to them. */
export function mountServiceWalletRoutes(app: App, deps: OwnDeps): void {
  app.put(
    '/api/internal/service-wallets/:name',
    {
      config: { policy: 'RequireOperator', rateLimit: 'Api' },
      schema: {
        operationId: 'ensureServiceWallet',
        tags: ['Operator'],
        summary: 'The wallet of the caller under a name, created when it does not exist',
        params: z.object({ name }),
        response: {
          200: z.object({
            name: z.string(),
            walletId: z.string(),
            walletAddress: z.string(),
            publicKey: z.string().describe('Base64, 32 bytes.'),
            algorithm: z.string(),
          }),
        },
      },
    },
    async (request) => {
      const wallet = await ownWallet(deps, callerOf(request), request.params.name);
      return {
        name: request.params.name,
        walletId: wallet.id,
        walletAddress: wallet.address,
        publicKey: encodeBase64(wallet.publicKey),
        algorithm: algorithmOf(wallet.keyType),
      };
    },
  );
}

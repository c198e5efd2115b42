import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, callerOf } from '#kit/http/http.ts';
import {
  identifier,
  operationIdUnder,
  plainText,
  WALLET_PREFIXES,
  type WalletPrefix,
  walletParams,
} from '../wallets/records/schemas.ts';
import { type DecryptDeps, decryptAs, encryptFrom } from './encrypt.ts';

const tags = ['Wallets'];

const encryptBody = z.object({
  data: plainText(524_288).describe('UTF-8 text.'),
  recipientWalletId: identifier.describe('Wallet id or address.'),
});

const encryptedSchema = z.object({
  encryptedData: z.string().describe('Compact JWE, content under A256GCM.'),
  recipientWalletId: z.string(),
  algorithm: z.literal('AES-256-GCM'),
});

const decryptBody = z.object({ encryptedData: z.string().min(1).max(1_000_000) });

export function mountEncryptionRoutes(app: App, deps: DecryptDeps): void {
  for (const prefix of WALLET_PREFIXES) mountUnder(app, deps, prefix);
}

function mountUnder(app: App, deps: DecryptDeps, prefix: WalletPrefix): void {
  app.post(
    `${prefix}/:id/encrypt`,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'encryptText'),
        summary: 'Encrypt text for a wallet',
        params: walletParams,
        body: encryptBody,
        response: { 200: encryptedSchema },
      },
    },
    async (request) => {
      const { data, recipientWalletId } = request.body;
      const message = { recipient: recipientWalletId, text: data };
      const { jwe } = await encryptFrom(deps, callerOf(request), request.params.id, message);
      return { encryptedData: jwe, recipientWalletId, algorithm: 'AES-256-GCM' as const };
    },
  );

  app.post(
    `${prefix}/:id/decrypt`,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'decryptText'),
        summary: 'Decrypt text encrypted for the wallet',
        params: walletParams,
        body: decryptBody,
        response: { 200: z.object({ data: z.string(), timestamp: z.string() }) },
      },
    },
    async (request, reply) => {
      const { encryptedData } = request.body;
      const data = await decryptAs(deps, callerOf(request), request.params.id, encryptedData);
      return reply
        .header('cache-control', 'no-store')
        .send({ data, timestamp: apiTimestamp(deps.clock.nowMs()) });
    },
  );
}

import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusals, walletRefusals } from '../errors.ts';
import {
  identifier,
  operationIdUnder,
  WALLET_PREFIXES,
  type WalletPrefix,
  walletParams,
} from '../wallets/records/schemas.ts';
import { type DecryptDeps, decryptAs, encryptFrom } from './encrypt.ts';

const tag = 'Wallets';

const encryptBody = z.object({
  data: z
    .string()
    .max(524_288)
    .refine((text) => text.isWellFormed(), 'contains an unpaired surrogate')
    .describe('Any text that UTF-8 can encode.'),
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
  addRoute(app, {
    method: 'POST',
    path: `${prefix}/:id/encrypt`,
    operationId: operationIdUnder(prefix, 'encryptText'),
    tag,
    summary: 'Encrypt text for a wallet',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    params: walletParams,
    body: {
      schema: encryptBody,
      example: { data: 'For your eyes only', recipientWalletId: '3f0e5a52-7f0b-4c0e-9d6b-1f1f6f1c2a77' },
    },
    answers: { 200: json('The encrypted text.', encryptedSchema) },
    refusals: [...walletRefusals, ...refusals('WALLET_LOCKED', 'WALLET_DELETED')],
    handle: async ({ caller, params, body }) => {
      const { data, recipientWalletId } = body;
      const { jwe } = await encryptFrom(deps, caller, params.id, {
        recipient: recipientWalletId,
        text: data,
      });
      return { encryptedData: jwe, recipientWalletId, algorithm: 'AES-256-GCM' as const };
    },
  });

  addRoute(app, {
    method: 'POST',
    path: `${prefix}/:id/decrypt`,
    operationId: operationIdUnder(prefix, 'decryptText'),
    tag,
    summary: 'Decrypt text encrypted for the wallet',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    params: walletParams,
    body: {
      schema: decryptBody,
      example: { encryptedData: 'eyJhbGciOiJFQ0RILUVTIiwiZW5jIjoiQTI1NkdDTSJ9..aXY.Y2lwaGVy.dGFn' },
    },
    answers: { 200: json('The text.', z.object({ data: z.string(), timestamp: z.string() })) },
    refusals: [...walletRefusals, ...refusals('WALLET_LOCKED', 'WALLET_DELETED', 'DECRYPT_FAILED')],
    noStore: true,
    handle: async ({ caller, params, body }) => {
      const data = await decryptAs(deps, caller, params.id, body.encryptedData);
      return { data, timestamp: apiTimestamp(deps.clock.nowMs()) };
    },
  });
}

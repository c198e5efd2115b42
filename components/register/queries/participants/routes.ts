import { z } from 'zod';
import { isWalletAddress } from '#core/crypto/address.ts';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { ENCRYPTION_ALGORITHMS } from '#core/crypto/encryption-key.ts';
import type { Reader } from '#kit/db/db.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { ofVisibleRegister } from '../../errors.ts';
import { visibleRegister } from '../../registers/state/access.ts';
import { resolveKeys } from './resolve.ts';
import { findKeys } from './store.ts';

export interface ParticipantsDeps {
  readonly db: Reader<RegisterSchema>;
}

const resolveBody = z.object({
  walletAddresses: z.array(z.string().refine(isWalletAddress, 'expected a wallet address')).min(1).max(200),
  algorithm: z.enum(ALGORITHMS).optional().describe('Only keys of this algorithm.'),
});

const keySchema = z
  .object({
    walletAddress: z.string(),
    participantId: z.string(),
    publicKey: z.string().describe('Base64.'),
    algorithm: z.string(),
    status: z.string().describe('Active or Deprecated.'),
    encryptionKey: z
      .object({
        algorithm: z.enum(ENCRYPTION_ALGORITHMS),
        publicKey: z.string().describe('Base64: 32 bytes for X25519, SubjectPublicKeyInfo otherwise.'),
      })
      .optional()
      .describe('The key that content for the address is encrypted to.'),
  })
  .meta({ id: 'ParticipantKey' });

const resolvedSchema = z.object({
  resolved: z.record(z.string(), keySchema).describe('Keys by wallet address.'),
  notFound: z.array(z.string()),
  revoked: z.array(z.string()),
});

export function mountParticipants(app: App, deps: ParticipantsDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/registers/:registerId/participants/resolve-public-keys',
    operationId: 'resolvePublicKeys',
    tag: 'Participants',
    summary: 'The keys that participants published for their addresses',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    params: z.object({ registerId: z.string() }),
    body: {
      schema: resolveBody,
      example: { walletAddresses: ['w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek'] },
    },
    answers: { 200: json('The keys by address.', resolvedSchema) },
    refusals: ofVisibleRegister,
    resource: visibleRegister(() => deps.db),
    handle: async ({ body, resource: register }) => {
      const { walletAddresses, algorithm } = body;
      const keys = await findKeys(deps.db, register.registerNo, walletAddresses);
      return resolveKeys(walletAddresses, keys, algorithm);
    },
  });
}
